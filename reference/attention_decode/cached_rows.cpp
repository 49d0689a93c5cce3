#include "reference/attention_decode/cached_rows.hpp"

#include <array>

#include "harness/operator/dtype.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Tensors = AttentionDecodeTensors;

std::int64_t slots_of_page(const Problem& p) { return p.block_size == 0 ? p.context : p.block_size; }

// Elements [begin, begin + head_dim) of `count` rows that are `stride` elements apart.
template <class Element>
RowsF32 read_elements(const Problem& p, const void* cache, const TokenRun& run, std::int64_t kv_head,
                      std::int64_t stride) {
  using Stored = Eigen::Matrix<Element, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const std::int64_t slot = run.page * slots_of_page(p) + run.within;
  const Element* first = static_cast<const Element*>(cache) + slot * stride + kv_head * p.head_dim;
  return Eigen::Map<const Stored, 0, Eigen::OuterStride<>>(first, run.count, p.head_dim, Eigen::OuterStride<>(stride))
      .template cast<float>();
}

// What each byte of codes stands for: one number, or two of 4 bits.
struct ByteValues {
  std::array<float, 256> first{};  // bits 0-3, or all
  std::array<float, 256> second{};

  explicit ByteValues(KvCode code) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::array<std::uint8_t, 1> codes{static_cast<std::uint8_t>(byte)};
      const std::array<std::uint16_t, 1> one{f16_bits(1)};
      std::array<float, 2> values{};
      const std::size_t count = code == KvCode::int4 ? 2 : 1;
      dequantize_kv_row(code, codes, one, std::span(values).first(count));
      first[static_cast<std::size_t>(byte)] = values[0];
      second[static_cast<std::size_t>(byte)] = values[1];
    }
  }
};

const ByteValues& byte_values(KvCode code) {
  static const std::array<ByteValues, 3> kTables{ByteValues(KvCode::int8), ByteValues(KvCode::fp8_e4m3),
                                                 ByteValues(KvCode::int4)};
  return kTables[code == KvCode::int8 ? 0 : code == KvCode::fp8_e4m3 ? 1 : 2];
}

// which: 0 for K, 1 for V, as the scales stand.
RowsF32 read_codes(const Problem& p, const Tensors& t, const void* cache, const TokenRun& run, std::int64_t kv_head,
                   std::int64_t which) {
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  const ByteValues& values = byte_values(code);
  const std::int64_t row_bytes = kv_row_bytes(code, p.head_dim);
  const std::int64_t first_row = (run.page * p.kv_heads + kv_head) * slots_of_page(p) + run.within;
  const std::int64_t group_size = p.head_dim / p.groups();
  RowsF32 rows(run.count, p.head_dim);
  for (std::int64_t j = 0; j < run.count; ++j) {
    const auto* codes = static_cast<const std::uint8_t*>(cache) + (first_row + j) * row_bytes;
    float* const row = rows.row(j).data();
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      const std::uint8_t byte = codes[code == KvCode::int4 ? d / 2 : d];
      row[d] = code == KvCode::int4 && d % 2 == 1 ? values.second[byte] : values.first[byte];
    }
    for (std::int64_t group = 0; group < p.groups(); ++group) {
      const std::uint16_t scale = t.kv_scales[((first_row + j) * p.groups() + group) * 2 + which];
      rows.row(j).segment(group * group_size, group_size) *= f16_value(scale);
    }
  }
  return rows;
}

}  // namespace

std::vector<TokenRun> token_runs(const Problem& p, const Tensors& t, std::int64_t sequence, std::int64_t begin,
                                 std::int64_t end, std::int64_t most) {
  const SequencePages pages{.blocks = p.block_size == 0 ? nullptr : t.block_table + sequence * p.max_blocks(),
                            .page = sequence,
                            .slots_of_page = slots_of_page(p)};
  return token_runs(pages, begin, end, most);
}

template <class Element>
RowsF32 cached_keys(const Problem& p, const Tensors& t, const TokenRun& run, std::int64_t kv_head) {
  return p.kv_bits == 16 ? read_elements<Element>(p, t.k, run, kv_head, p.k_stride())
                         : read_codes(p, t, t.k, run, kv_head, 0);
}

template <class Element>
RowsF32 cached_values(const Problem& p, const Tensors& t, const TokenRun& run, std::int64_t kv_head) {
  return p.kv_bits == 16 ? read_elements<Element>(p, t.v, run, kv_head, p.v_stride())
                         : read_codes(p, t, t.v, run, kv_head, 1);
}

template RowsF32 cached_keys<Eigen::half>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);
template RowsF32 cached_keys<Eigen::bfloat16>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);
template RowsF32 cached_keys<float>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);
template RowsF32 cached_values<Eigen::half>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);
template RowsF32 cached_values<Eigen::bfloat16>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);
template RowsF32 cached_values<float>(const Problem&, const Tensors&, const TokenRun&, std::int64_t);

}  // namespace inferometer
