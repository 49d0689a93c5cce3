#include <algorithm>
#include <cstddef>

#include "harness/operator/generate.hpp"
#include "reference/kv_memory/request.hpp"

namespace inferometer {
namespace {

constexpr std::uint64_t kSharedStream = 0;  // tokens behind hash ids
constexpr std::uint64_t kOwnStream = 1;     // tokens of one request alone

std::int32_t token_at(std::uint64_t key, std::int64_t index) {
  return static_cast<std::int32_t>(mix_bits(key + static_cast<std::uint64_t>(index)) >> 33);  // 31 bits: not negative
}

}  // namespace

void make_tokens(const KvRequest& request, std::int64_t begin, std::int64_t end, std::vector<std::int32_t>& tokens) {
  tokens.clear();
  tokens.reserve(static_cast<std::size_t>(end - begin));
  const std::int64_t shared_end =
      std::min(request.prompt, std::ssize(request.hash_ids) * kHashBlockTokens);  // of the prompt
  std::int64_t at = begin;
  while (at < std::min(end, shared_end)) {
    const std::int64_t block = at / kHashBlockTokens;
    const auto id = static_cast<std::uint64_t>(request.hash_ids[static_cast<std::size_t>(block)]);
    const std::uint64_t key = stream_key(id, kSharedStream);
    for (const std::int64_t stop = std::min({end, shared_end, (block + 1) * kHashBlockTokens}); at < stop; ++at)
      tokens.push_back(token_at(key, at % kHashBlockTokens));
  }
  const std::uint64_t own_key = stream_key(static_cast<std::uint64_t>(request.id), kOwnStream);
  for (; at < end; ++at) tokens.push_back(token_at(own_key, at));
}

}  // namespace inferometer
