#include "reference/attention_decode/tensors.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reference/attention_decode/cache_layout.hpp"
#include "reference/attention_decode/queries.hpp"
#include "reference/kv_cache/block_layout.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Shape = std::vector<std::int64_t>;

constexpr double kScaleMeanOverStddev = 4;  // random scales stay positive: no value is 3.5 deviations off

bool is_quantized(const Problem& p) { return p.kv_bits != 16; }
bool is_paged(const Problem& p) { return p.block_size != 0; }

// Where a tensor stands among them.
struct Order {
  std::size_t q = 0, k = 1, v = 2, kv_scales = 3, seq_lens, block_table, o, lse;

  explicit Order(const Problem& p) {
    seq_lens = is_quantized(p) ? 4 : 3;
    block_table = seq_lens + 1;
    o = is_paged(p) ? block_table + 1 : block_table;
    lse = o + 1;
  }
};

// Blocks of a pool, or reservations of a contiguous cache; and tokens in each.
std::int64_t pages_of(const Problem& p) { return is_paged(p) ? pool_blocks(p) : p.batch; }
std::int64_t slots_of(const Problem& p) { return is_paged(p) ? p.block_size : p.context; }

// kv_bits 16. Padded rows show no heads: these end before the row does.
Shape cache_shape(const Problem& p, std::int64_t stride) {
  if (stride == p.kv_heads * p.head_dim) return {pages_of(p), slots_of(p), p.kv_heads, p.head_dim};
  return {pages_of(p), slots_of(p), stride};
}

Shape codes_shape(const Problem& p) {
  return {pages_of(p), p.kv_heads, slots_of(p), kv_row_bytes(kv_code(p.kv_bits, p.kv_format), p.head_dim)};
}

std::vector<ElementRange> unused_of_cache(const Problem& p, const TensorSpec& cache, std::int64_t stride) {
  std::vector<ElementRange> unused = unused_tokens(p, stride);
  add_row_padding(p.kv_heads * p.head_dim, stride, cache.elements(), unused);
  return unused;
}

std::vector<ElementRange> unused_of_codes(const Problem& p, const TensorSpec& codes) {
  const std::int64_t row = codes.shape.back();
  std::vector<ElementRange> unused = unused_rows(p, row);
  add_row_padding(kv_code_bytes(kv_code(p.kv_bits, p.kv_format), p.head_dim), row, codes.elements(), unused);
  return unused;
}

// Root mean square of the numbers that the codes in random bytes stand for.
double rms_of_codes(KvCode code) {
  double squares = 0;
  for (int byte = 0; byte < 256; ++byte) {
    double value = 0;
    switch (code) {
      case KvCode::int8: value = static_cast<std::int8_t>(byte); break;
      case KvCode::fp8_e4m3: {
        const bool is_nan = (byte & 0x7f) == 0x7f;  // its neighbour stands there instead
        value = e4m3_value(static_cast<std::uint8_t>(is_nan ? byte ^ 1 : byte));
        break;
      }
      case KvCode::int4: value = byte % 16 - 8; break;
    }
    squares += value * value;
  }
  return std::sqrt(squares / 256);
}

// With a mean of m and a standard deviation of m / 4, the root mean square of a scale is m sqrt(1 + 1 / 16).
Normal scales_of(KvCode code) {
  const double spread = std::sqrt(1 + 1 / (kScaleMeanOverStddev * kScaleMeanOverStddev));
  const double mean = 1 / (rms_of_codes(code) * spread);
  return {.stddev = mean / kScaleMeanOverStddev, .mean = mean};
}

std::vector<std::int32_t> lengths(const Problem& p) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) lengths.push_back(static_cast<std::int32_t>(p.context_of(b)));
  return lengths;
}

}  // namespace

std::vector<TensorSpec> decode_tensors(const Problem& p) {
  const Shape rows = {p.batch, p.q_len, p.q_heads, p.head_dim};
  std::vector<TensorSpec> specs;
  specs.push_back({.name = "q", .dtype = p.dtype, .shape = rows});
  if (is_quantized(p)) {
    const KvCode code = kv_code(p.kv_bits, p.kv_format);
    const RandomBytes codes{.without_e4m3_nan = code == KvCode::fp8_e4m3};
    for (const char* name : {"k", "v"})
      specs.push_back(
          {.name = name, .role = Role::kv_pool, .dtype = Dtype::u8, .shape = codes_shape(p), .source = codes});
    specs.push_back({.name = "kv_scales",
                     .role = Role::kv_pool,
                     .dtype = Dtype::f16,
                     .shape = {pages_of(p), p.kv_heads, slots_of(p), p.groups(), 2},
                     .source = scales_of(code)});
  } else {
    specs.push_back({.name = "k", .role = Role::kv_pool, .dtype = p.dtype, .shape = cache_shape(p, p.k_stride())});
    specs.push_back({.name = "v", .role = Role::kv_pool, .dtype = p.dtype, .shape = cache_shape(p, p.v_stride())});
  }
  specs.push_back({.name = "seq_lens", .dtype = Dtype::i32, .shape = {p.batch}});
  if (is_paged(p)) specs.push_back({.name = "block_table", .dtype = Dtype::i32, .shape = {p.batch, p.max_blocks()}});
  specs.push_back({.name = "o", .role = Role::output, .dtype = p.dtype, .shape = rows});
  specs.push_back({.name = "lse", .role = Role::output, .dtype = Dtype::f32, .shape = {p.batch, p.q_heads, p.q_len}});
  return specs;
}

void add_decode_contents(const Problem& p, std::vector<TensorSpec>& specs) {
  const Order at(p);
  if (is_quantized(p)) {
    specs[at.v].unused = specs[at.k].unused = unused_of_codes(p, specs[at.k]);
    specs[at.kv_scales].unused = unused_rows(p, p.groups() * 2);
  } else {
    specs[at.k].unused = unused_of_cache(p, specs[at.k], p.k_stride());
    specs[at.v].unused = unused_of_cache(p, specs[at.v], p.v_stride());
  }
  specs[at.seq_lens].source = lengths(p);
  if (is_paged(p)) specs[at.block_table].source = block_table(p);
  specs[at.q].source = leaning_queries(p, specs);
}

AttentionDecodeTensors bind_decode(const Problem& p, std::span<void* const> pointers) {
  const Order at(p);
  return {.q = pointers[at.q],
          .k = pointers[at.k],
          .v = pointers[at.v],
          .kv_scales = is_quantized(p) ? static_cast<const std::uint16_t*>(pointers[at.kv_scales]) : nullptr,
          .seq_lens = static_cast<const std::int32_t*>(pointers[at.seq_lens]),
          .block_table = is_paged(p) ? static_cast<const std::int32_t*>(pointers[at.block_table]) : nullptr,
          .o = pointers[at.o],
          .lse = static_cast<float*>(pointers[at.lse])};
}

}  // namespace inferometer
