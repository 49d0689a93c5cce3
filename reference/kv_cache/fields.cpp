#include "reference/kv_cache/fields.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace inferometer {

std::int64_t longest_context(const std::vector<std::int64_t>& contexts) {
  return contexts.empty() ? 0 : *std::max_element(contexts.begin(), contexts.end());
}

void check_contexts(std::int64_t batch, std::int64_t context, const std::vector<std::int64_t>& contexts) {
  if (contexts.empty()) return;
  if (static_cast<std::int64_t>(contexts.size()) != batch)
    throw ProblemError("contexts", "contexts must hold one length for each of the " + std::to_string(batch) +
                                       " sequences of batch, got " + std::to_string(contexts.size()));
  if (const std::int64_t longest = longest_context(contexts); context != longest)
    throw ProblemError("context", "context must be the maximum of contexts, " + std::to_string(longest) + ", got " +
                                      std::to_string(context));
}

void check_head_dim(std::int64_t head_dim) {
  if (head_dim % 8 != 0)
    throw ProblemError("head_dim", "head_dim must be a multiple of 8, got " + std::to_string(head_dim));
}

void check_pool_blocks(std::int64_t blocks) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (blocks > kMost)
    throw ProblemError("block_size", "the cache must fit " + std::to_string(kMost) +
                                         " blocks, whose numbers are 32-bit, got " + std::to_string(blocks));
}

}  // namespace inferometer
