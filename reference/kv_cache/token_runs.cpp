#include "reference/kv_cache/token_runs.hpp"

#include <algorithm>

namespace inferometer {

std::vector<TokenRun> token_runs(const SequencePages& pages, std::int64_t begin, std::int64_t end, std::int64_t most) {
  const bool paged = pages.blocks != nullptr;
  std::vector<TokenRun> runs;
  for (std::int64_t token = begin; token < end; token += runs.back().count) {
    const std::int64_t within = paged ? token % pages.slots_of_page : token;
    const std::int64_t page = paged ? pages.blocks[token / pages.slots_of_page] : pages.page;
    const std::int64_t count = std::min({most, pages.slots_of_page - within, end - token});
    runs.push_back({.token = token, .page = page, .within = within, .count = count});
  }
  return runs;
}

}  // namespace inferometer
