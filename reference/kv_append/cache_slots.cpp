#include "reference/kv_append/cache_slots.hpp"

#include <algorithm>

#include "reference/attention_decode/cache_layout.hpp"

namespace inferometer {
namespace {

// The cache as decoding finds it after the append.
AttentionDecodeProblem after(const KvAppendProblem& p) {
  AttentionDecodeProblem decode;
  decode.batch = p.batch;
  decode.context = p.capacity();
  for (const std::int64_t context : p.contexts) decode.contexts.push_back(context + p.new_tokens);
  decode.kv_heads = p.kv_heads;
  decode.head_dim = p.head_dim;
  decode.block_size = p.block_size;
  return decode;
}

// Slots [begin, end) of one area.
struct Slots {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// The slots that get new tokens, of every area.
std::vector<Slots> written_slots(const KvAppendProblem& p) {
  std::vector<Slots> written(static_cast<std::size_t>(cache_areas(p)));
  const std::int64_t slots = area_slots(p);
  const std::vector<std::int32_t> table = p.block_size == 0 ? std::vector<std::int32_t>() : append_block_table(p);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t end = p.context_of(b) + p.new_tokens;
    for (std::int64_t token = p.context_of(b); token < end;) {
      const std::int64_t area =
          p.block_size == 0 ? b : table[static_cast<std::size_t>(b * p.max_blocks() + token / slots)];
      const std::int64_t first = token % slots;  // contiguous: the token itself, for it lies below the capacity
      const std::int64_t count = std::min(end - token, slots - first);
      written[static_cast<std::size_t>(area)] = {.begin = first, .end = first + count};
      token += count;
    }
  }
  return written;
}

}  // namespace

std::int64_t cache_areas(const KvAppendProblem& problem) {
  return problem.block_size == 0 ? problem.batch : pool_blocks(after(problem));
}

std::int64_t area_slots(const KvAppendProblem& problem) {
  return problem.block_size == 0 ? problem.capacity() : problem.block_size;
}

std::vector<std::int32_t> append_block_table(const KvAppendProblem& problem) { return block_table(after(problem)); }

std::vector<ElementRange> untouched_slots(const KvAppendProblem& problem, std::int64_t layers,
                                          std::int64_t slot_elements) {
  const std::int64_t slots = area_slots(problem);
  const std::vector<Slots> written = written_slots(problem);
  std::vector<ElementRange> ranges;
  for (std::size_t area = 0; area < written.size(); ++area) {
    const std::int64_t first = static_cast<std::int64_t>(area) * layers * slots;
    const auto add = [&](std::int64_t begin, std::int64_t end) {
      if (begin < end)
        ranges.push_back({.begin = (first + begin) * slot_elements,
                          .end = (first + end) * slot_elements,
                          .repeats = layers,
                          .stride = slots * slot_elements});
    };
    add(0, written[area].begin);
    add(written[area].end, slots);
  }
  return ranges;
}

}  // namespace inferometer
