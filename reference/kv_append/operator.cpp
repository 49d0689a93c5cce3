// kv_append: fields, tensors, cost and tolerance. The judge's answer is in expected.cpp.
#include "harness/operator/operator.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/kv_append/cache_slots.hpp"
#include "reference/kv_append/expected.hpp"
#include "reference/kv_append/problem.hpp"
#include "reference/kv_cache/fields.hpp"
#include "reference/kv_cache/layout.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = KvAppendProblem;
using Tensors = KvAppendTensors;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();  // seq_lens and block_table are i32

const std::vector<Field<Problem>> kFirstFields = {
    {.name = "batch", .member = &Problem::batch, .doc = "sequences", .max = std::int64_t{1} << 20},
    {.name = "new_tokens",
     .member = &Problem::new_tokens,
     .doc = "tokens appended to every sequence: 1 while decoding, a chunk of the prompt in prefill",
     .max = kInt32Max},
    {.name = "context",
     .member = &Problem::context,
     .doc = "tokens that every sequence holds already; with contexts: their maximum",
     .min = 0,
     .max = kInt32Max},
    {.name = "contexts",
     .member = &Problem::contexts,
     .doc = "tokens that each sequence holds already, 0 allowed; empty: context for all",
     .min = 0,
     .max = kInt32Max},
};

const std::vector<Field<Problem>> kLastFields = {
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of the new keys and values",
     .dtypes = {Dtype::f16, Dtype::bf16, Dtype::f32}},
};

void complete(Problem& p) {
  if (p.context == 0) p.context = longest_context(p.contexts);
}

void validate(const Problem& p) {
  check_head_dim(p.head_dim);
  check_kv_quantization(p.kv_bits, p.kv_format, p.kv_group_size, p.head_dim);
  check_contexts(p.batch, p.context, p.contexts);
  if (p.capacity() > kInt32Max)
    throw ProblemError("new_tokens", "context and new_tokens together must be at most " + std::to_string(kInt32Max) +
                                         ", for lengths are 32-bit, got " + std::to_string(p.capacity()));
  // In bytes of f32, so that no offset into a tensor can overflow.
  checked_product("new_tokens", {p.batch, p.new_tokens, p.kv_heads, p.head_dim, 4});
  if (p.block_size != 0) check_pool_blocks(cache_areas(p));
  checked_product("context", {cache_areas(p), area_slots(p), p.kv_heads, p.head_dim, 4});
}

std::vector<std::int32_t> lengths(const Problem& p) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) lengths.push_back(static_cast<std::int32_t>(p.context_of(b)));
  return lengths;
}

// A byte that is no code of the cache's format.
std::uint8_t byte_of_no_code(const Problem& p) {
  switch (kv_code(p.kv_bits, p.kv_format)) {
    case KvCode::int8: return 0x80;      // -128
    case KvCode::fp8_e4m3: return 0xff;  // NaN
    case KvCode::int4: return 0x88;      // -8, twice
  }
  return 0xff;
}

// Where a tensor stands among them.
struct Order {
  std::size_t k_new = 0, v_new = 1, seq_lens = 2, block_table = 3, k, v, kv_scales;
  explicit Order(const Problem& p) : k(p.block_size == 0 ? 3 : 4), v(k + 1), kv_scales(k + 2) {}
};

std::vector<TensorSpec> tensors(const Problem& p) {
  const std::vector<std::int64_t> rows = {p.batch, p.new_tokens, p.kv_heads, p.head_dim};
  std::vector<TensorSpec> specs;
  specs.push_back({.name = "k_new", .dtype = p.dtype, .shape = rows});
  specs.push_back({.name = "v_new", .dtype = p.dtype, .shape = rows});
  specs.push_back({.name = "seq_lens", .dtype = Dtype::i32, .shape = {p.batch}});
  if (p.block_size != 0)
    specs.push_back({.name = "block_table", .dtype = Dtype::i32, .shape = {p.batch, p.max_blocks()}});
  TensorSpec cache{.name = "k", .role = Role::output, .dtype = p.dtype, .shape = {}};
  if (p.kv_bits == 16) {
    cache.shape = {cache_areas(p), area_slots(p), p.kv_heads, p.head_dim};
  } else {
    cache.dtype = Dtype::u8;
    cache.shape = {cache_areas(p), p.kv_heads, area_slots(p),
                   kv_row_bytes(kv_code(p.kv_bits, p.kv_format), p.head_dim)};
    cache.poison = byte_of_no_code(p);
  }
  specs.push_back(cache);
  cache.name = "v";
  specs.push_back(cache);
  if (p.kv_bits != 16)
    specs.push_back({.name = "kv_scales",
                     .role = Role::output,
                     .dtype = Dtype::f16,
                     .shape = {cache_areas(p), p.kv_heads, area_slots(p), p.groups(), 2}});
  return specs;
}

void add_contents(const Problem& p, std::vector<TensorSpec>& specs) {
  const Order at(p);
  specs[at.seq_lens].source = lengths(p);
  if (p.block_size != 0) specs[at.block_table].source = append_block_table(p);
  if (p.kv_bits == 16) {
    specs[at.v].unused = specs[at.k].unused = untouched_slots(p, 1, p.kv_heads * p.head_dim);
    return;
  }
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  const std::int64_t row_bytes = kv_row_bytes(code, p.head_dim);
  std::vector<ElementRange>& unused = specs[at.k].unused;
  unused = untouched_slots(p, p.kv_heads, row_bytes);
  if (const std::int64_t code_bytes = kv_code_bytes(code, p.head_dim); code_bytes < row_bytes)
    unused.push_back({.begin = code_bytes,
                      .end = row_bytes,
                      .repeats = cache_areas(p) * p.kv_heads * area_slots(p),
                      .stride = row_bytes});
  specs[at.v].unused = unused;
  specs[at.kv_scales].unused = untouched_slots(p, p.kv_heads, 2 * p.groups());
}

Tensors bind(const Problem& p, std::span<void* const> pointers) {
  const Order at(p);
  return {.k_new = pointers[at.k_new],
          .v_new = pointers[at.v_new],
          .seq_lens = static_cast<const std::int32_t*>(pointers[at.seq_lens]),
          .block_table = p.block_size == 0 ? nullptr : static_cast<const std::int32_t*>(pointers[at.block_table]),
          .k = pointers[at.k],
          .v = pointers[at.v],
          .kv_scales = p.kv_bits == 16 ? nullptr : static_cast<std::uint16_t*>(pointers[at.kv_scales])};
}

// New keys and values read once, their elements or codes and scales written once; lengths, block table and padding are
// not counted as useful. The arithmetic of quantising is no more than the conversion of what passes: not counted.
Work work(const Problem& p) {
  const auto rows = static_cast<double>(2 * p.batch * p.new_tokens * p.kv_heads);
  const double given = static_cast<double>(p.head_dim) * static_cast<double>(dtype_bytes(p.dtype));
  const double stored =
      p.kv_bits == 16 ? given : static_cast<double>(p.head_dim * p.kv_bits) / 8 + 2 * static_cast<double>(p.groups());
  return {.flops = 0, .bytes = rows * (given + stored), .arithmetic = Arithmetic::f32};
}

// Exact: layout.hpp states every rounding.
Tolerance tolerance(const Problem&, std::string_view) { return {.rel_l2 = 0, .max_error_over_rms = 0}; }

const RegisterOperator<KvAppend> registered{{
    .summary = "new keys and values into the contiguous or paged KV cache, quantised on the way when kv_bits says so",
    .fields = joined_fields({kFirstFields, kv_cache_fields<Problem>(), kLastFields}),
    .complete = &complete,
    .validate = &validate,
    .tensors = &tensors,
    .add_contents = &add_contents,
    .bind = &bind,
    .work = &work,
    .expect = &expect_kv_append,
    .reference = "copied or quantised by the reference, exactly",
    .tolerance = &tolerance,
    .metrics = &kv_append_metrics,
    .metric_docs = {{"storage_rel_error",
                     "root mean square error of the stored keys and values over the root mean square of what was "
                     "appended, on normal inputs without outliers"}},
    .headline_metrics = {"storage_rel_error"},
}};

}  // namespace
}  // namespace inferometer
