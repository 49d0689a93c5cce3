#include "reference/attention_prefill/sequence.hpp"

#include <algorithm>

#include "reference/common/convert.hpp"

namespace inferometer {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;

PrefillSequence prefill_sequence(const Problem& p, const Tensors& t, std::int64_t b) {
  PrefillSequence sequence{
      .index = b, .q_len = p.q_len, .kv_len = p.kv_len, .first_q = b * p.q_len, .first_key = b * p.kv_len, .pages = {}};
  if (p.ragged()) {
    sequence.q_len = t.cu_q_lens[b + 1] - t.cu_q_lens[b];
    sequence.kv_len = t.cu_kv_lens[b + 1] - t.cu_kv_lens[b];
    sequence.first_q = t.cu_q_lens[b];
    sequence.first_key = t.cu_kv_lens[b];
  }
  sequence.pages.slots_of_page = p.paged() ? p.block_size : sequence.kv_len;
  if (p.paged()) sequence.pages.blocks = t.block_table + b * p.max_blocks();
  return sequence;
}

SeenKeys visible_keys(const Problem& p, const PrefillSequence& sequence, std::int64_t query) {
  if (!p.causal) return {.first = 0, .end = sequence.kv_len};
  const std::int64_t own = sequence.own_key(query);
  const std::int64_t end = std::clamp<std::int64_t>(own + 1, 0, sequence.kv_len);
  const std::int64_t oldest = p.window_left < 0 ? 0 : own - p.window_left;
  return {.first = std::clamp<std::int64_t>(oldest, 0, end), .end = end};
}

void load_keys_and_values(const Problem& p, const Tensors& t, const PrefillSequence& sequence, std::int64_t kv_head,
                          std::int64_t begin, std::int64_t count, float* k, float* v) {
  for (const TokenRun& run : token_runs(sequence.pages, begin, begin + count, count)) {
    const std::int64_t page = p.paged() ? run.page * p.block_size : sequence.first_key;
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int64_t row = page + run.within + i;
      const std::int64_t to = run.token + i - begin;
      load_floats(p.dtype, t.k, row * p.k_stride() + kv_head * p.head_dim, p.head_dim, k + to * p.head_dim);
      load_floats(p.dtype, t.v, row * p.v_stride() + kv_head * p.v_dim(), p.v_dim(), v + to * p.v_dim());
    }
  }
}

std::int64_t lse_index(const Problem& p, const PrefillSequence& sequence, std::int64_t head, std::int64_t query) {
  if (p.ragged()) return head * p.total_q() + sequence.first_q + query;
  return (sequence.index * p.q_heads + head) * p.q_len + query;
}

}  // namespace inferometer
