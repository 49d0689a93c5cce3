// kv_append / cpu.naive: new keys and values into a contiguous or a paged cache, one token at a time.
//
//   in   k_new, v_new  [batch, new_tokens, kv_heads, head_dim]                      dtype
//        seq_lens      [batch]  tokens stored already                               i32
//        block_table   [batch, max_blocks], paged                                   i32
//   out  k, v          kv_bits 16: [areas, slots, kv_heads, head_dim]               dtype
//                      8, 4:       [areas, kv_heads, slots, row_bytes]              u8
//        kv_scales     8, 4:       [areas, kv_heads, slots, groups, 2]              f16
//
// An area is a sequence of a contiguous cache (slots: its capacity) or a block of a paged one (slots: block_size).
#include <cstring>
#include <span>
#include <vector>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/common/convert.hpp"
#include "reference/kv_append/problem.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = KvAppendProblem;
using Tensors = KvAppendTensors;

struct Place {
  std::int64_t area;
  std::int64_t slot;
  std::int64_t slots;  // of the area
};

// Of new token i of a sequence.
Place place_of(const Problem& p, const Tensors& t, std::int64_t sequence, std::int64_t i) {
  const std::int64_t token = t.seq_lens[sequence] + i;
  if (p.block_size == 0) return {.area = sequence, .slot = token, .slots = p.capacity()};
  return {.area = t.block_table[sequence * p.max_blocks() + token / p.block_size],
          .slot = token % p.block_size,
          .slots = p.block_size};
}

// All heads of token n of [batch * new_tokens].
void copy_token(const Problem& p, const Tensors& t, std::int64_t n, const Place& to) {
  const auto bytes = static_cast<std::size_t>(p.kv_heads * p.head_dim) * dtype_bytes(p.dtype);
  const std::size_t from_offset = static_cast<std::size_t>(n) * bytes;
  const std::size_t to_offset = static_cast<std::size_t>(to.area * to.slots + to.slot) * bytes;
  std::memcpy(static_cast<std::byte*>(t.k) + to_offset, static_cast<const std::byte*>(t.k_new) + from_offset, bytes);
  std::memcpy(static_cast<std::byte*>(t.v) + to_offset, static_cast<const std::byte*>(t.v_new) + from_offset, bytes);
}

void quantize_token(const Problem& p, const Tensors& t, std::int64_t n, const Place& to) {
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  std::vector<float> elements(static_cast<std::size_t>(p.head_dim));
  std::vector<std::uint16_t> scales(static_cast<std::size_t>(p.groups()));
  for (std::int64_t head = 0; head < p.kv_heads; ++head) {
    const std::int64_t row = (to.area * p.kv_heads + head) * to.slots + to.slot;
    const auto quantize = [&](const void* from, void* cache, std::int64_t which) {
      load_floats(p.dtype, from, (n * p.kv_heads + head) * p.head_dim, p.head_dim, elements.data());
      const std::span codes(static_cast<std::uint8_t*>(cache) + row * kv_row_bytes(code, p.head_dim),
                            static_cast<std::size_t>(kv_code_bytes(code, p.head_dim)));
      quantize_kv_row(code, elements, codes, scales);
      for (std::int64_t group = 0; group < p.groups(); ++group)
        t.kv_scales[(row * p.groups() + group) * 2 + which] = scales[static_cast<std::size_t>(group)];
    };
    quantize(t.k_new, t.k, 0);
    quantize(t.v_new, t.v, 1);
  }
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  parallel_for(p.batch * p.new_tokens, launch.threads, [&](std::int64_t n) {
    const Place to = place_of(p, t, n / p.new_tokens, n % p.new_tokens);
    p.kv_bits == 16 ? copy_token(p, t, n, to) : quantize_token(p, t, n, to);
  });
}

const RegisterVariant<KvAppend> registered{{
    .name = "cpu.naive",
    .summary = "token by token, contiguous or through the block table, threads over tokens",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
