// attention_decode: fields, tensors, cost and tolerance. The judge's answer is in expected.cpp.
#include "harness/operator/operator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/tolerance.hpp"
#include "reference/attention_decode/cache_layout.hpp"
#include "reference/attention_decode/expected.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Tensors = AttentionDecodeTensors;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();  // seq_lens and block_table are i32

const std::vector<Field<Problem>> kFields = {
    {.name = "batch", .member = &Problem::batch, .doc = "sequences", .max = std::int64_t{1} << 20},
    {.name = "context",
     .member = &Problem::context,
     .doc = "tokens in the cache of every sequence, the new ones included; with contexts: their maximum",
     .min = 0,
     .max = kInt32Max},
    {.name = "contexts",
     .member = &Problem::contexts,
     .doc = "tokens in the cache of each sequence, 0 allowed; empty: context for all",
     .min = 0,
     .max = kInt32Max},
    {.name = "q_len", .member = &Problem::q_len, .doc = "new tokens per sequence, causal among themselves", .max = 8},
    {.name = "q_heads", .member = &Problem::q_heads, .doc = "query heads, a multiple of kv_heads"},
    {.name = "kv_heads", .member = &Problem::kv_heads, .doc = "key and value heads"},
    {.name = "head_dim",
     .member = &Problem::head_dim,
     .doc = "elements of one head, a multiple of 8",
     .min = 8,
     .max = 256},
    {.name = "block_size",
     .member = &Problem::block_size,
     .doc = "tokens in a block of the paged cache; 0: contiguous cache",
     .min = 0,
     .max = 512},
    {.name = "kv_bits",
     .member = &Problem::kv_bits,
     .doc = "bits of a stored key or value; 16: dtype",
     .min = 16,
     .max = 16},
    {.name = "splits",
     .member = &Problem::splits,
     .doc = "parts each sequence is cut into along its context; 0: chosen by the variant",
     .min = 0,
     .max = 4096},
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of Q, K, V and O",
     .dtypes = {Dtype::f16, Dtype::bf16, Dtype::f32}},
};

std::int64_t longest(const Problem& p) {
  return p.contexts.empty() ? 0 : *std::max_element(p.contexts.begin(), p.contexts.end());
}

void complete(Problem& p) {
  if (p.context == 0) p.context = longest(p);
}

void validate(const Problem& p) {
  if (p.head_dim % 8 != 0)
    throw ProblemError("head_dim", "head_dim must be a multiple of 8, got " + std::to_string(p.head_dim));
  if (p.q_heads % p.kv_heads != 0)
    throw ProblemError("q_heads", "q_heads must be a multiple of kv_heads, got " + std::to_string(p.q_heads) + " and " +
                                      std::to_string(p.kv_heads));
  if (!p.contexts.empty() && static_cast<std::int64_t>(p.contexts.size()) != p.batch)
    throw ProblemError("contexts", "contexts must hold one length for each of the " + std::to_string(p.batch) +
                                       " sequences of batch, got " + std::to_string(p.contexts.size()));
  if (p.context == 0)
    throw ProblemError("context", p.contexts.empty() ? "context or contexts must be given"
                                                     : "contexts must hold a length above 0, got zeros only");
  if (!p.contexts.empty() && p.context != longest(p))
    throw ProblemError("context", "context must be the maximum of contexts, " + std::to_string(longest(p)) + ", got " +
                                      std::to_string(p.context));
  // In bytes of f32, so that no offset into a tensor can overflow.
  checked_product("q_heads", {p.batch, p.q_len, p.q_heads, p.head_dim, 4});
  checked_product("context", {p.batch, p.context, p.kv_heads, p.head_dim, 4});
  if (p.block_size == 0) return;
  if (pool_blocks(p) > kInt32Max)
    throw ProblemError("block_size", "the cache must fit " + std::to_string(kInt32Max) +
                                         " blocks, whose numbers are 32-bit, got " + std::to_string(pool_blocks(p)));
  checked_product("block_size", {pool_blocks(p), p.block_size, p.kv_heads, p.head_dim, 4});
}

std::vector<std::int32_t> lengths(const Problem& p) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) lengths.push_back(static_cast<std::int32_t>(p.context_of(b)));
  return lengths;
}

// The inputs among the tensors.
enum : std::size_t { kQ, kK, kV, kSeqLens, kBlockTable };  // the last one when paged

std::vector<TensorSpec> tensors(const Problem& p) {
  const bool paged = p.block_size != 0;
  const std::vector<std::int64_t> cache =
      paged ? std::vector<std::int64_t>{pool_blocks(p), p.block_size, p.kv_heads, p.head_dim}
            : std::vector<std::int64_t>{p.batch, p.context, p.kv_heads, p.head_dim};
  const std::vector<std::int64_t> rows = {p.batch, p.q_len, p.q_heads, p.head_dim};
  std::vector<TensorSpec> specs;
  specs.push_back({.name = "q", .dtype = p.dtype, .shape = rows});
  specs.push_back({.name = "k", .role = Role::kv_pool, .dtype = p.dtype, .shape = cache});
  specs.push_back({.name = "v", .role = Role::kv_pool, .dtype = p.dtype, .shape = cache});
  specs.push_back({.name = "seq_lens", .dtype = Dtype::i32, .shape = {p.batch}});
  if (paged) specs.push_back({.name = "block_table", .dtype = Dtype::i32, .shape = {p.batch, p.max_blocks()}});
  specs.push_back({.name = "o", .role = Role::output, .dtype = p.dtype, .shape = rows});
  specs.push_back({.name = "lse", .role = Role::output, .dtype = Dtype::f32, .shape = {p.batch, p.q_heads, p.q_len}});
  return specs;
}

void add_contents(const Problem& p, std::vector<TensorSpec>& specs) {
  specs[kV].unused = specs[kK].unused = unused_slots(p);
  specs[kSeqLens].source = lengths(p);
  if (p.block_size != 0) specs[kBlockTable].source = block_table(p);
}

Tensors bind(const Problem& p, std::span<void* const> pointers) {
  const std::size_t outputs = p.block_size == 0 ? kBlockTable : kBlockTable + 1;
  return {.q = pointers[kQ],
          .k = pointers[kK],
          .v = pointers[kV],
          .seq_lens = static_cast<const std::int32_t*>(pointers[kSeqLens]),
          .block_table = p.block_size == 0 ? nullptr : static_cast<const std::int32_t*>(pointers[kBlockTable]),
          .o = pointers[outputs],
          .lse = static_cast<float*>(pointers[outputs + 1])};
}

// Q K^T and P V take 2 head_dim FLOPs each per query head and visible (query, key) pair. Of c keys the last
// n = min(q_len, c) queries see c - n + 1, ..., c. Bytes are those of every key and value once, Q, O and the
// log-sum-exp; lengths and block table are not counted as useful.
Work work(const Problem& p) {
  double pairs = 0;
  double tokens = 0;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const auto c = static_cast<double>(p.context_of(b));
    const auto n = std::min(static_cast<double>(p.q_len), c);
    pairs += n * c - n * (n - 1) / 2;
    tokens += c;
  }
  const auto element = static_cast<double>(dtype_bytes(p.dtype));
  const auto rows = static_cast<double>(p.batch * p.q_len * p.q_heads);
  return {.flops = 4.0 * static_cast<double>(p.q_heads * p.head_dim) * pairs,
          .bytes = tokens * static_cast<double>(2 * p.kv_heads * p.head_dim) * element +
                   rows * (2.0 * static_cast<double>(p.head_dim) * element + sizeof(float)),
          .arithmetic = p.dtype == Dtype::f32 ? Arithmetic::f32 : Arithmetic::f16_matmul};
}

// S stays in f32: no decode kernel has a reason to store it.
Tolerance tolerance(const Problem& p, std::string_view tensor) {
  return tensor == "lse" ? log_sum_exp_tolerance(Dtype::f32, p.head_dim, p.context)
                         : attention_output_tolerance(p.dtype, p.head_dim, p.context);
}

const RegisterOperator<AttentionDecode> registered{{
    .summary = "the newest queries of each sequence against its contiguous or paged KV cache, and the log-sum-exp",
    .fields = kFields,
    .complete = &complete,
    .validate = &validate,
    .tensors = &tensors,
    .add_contents = &add_contents,
    .bind = &bind,
    .work = &work,
    .expect = &expect_attention_decode,
    .reference = "the equation in f64",
    .tolerance = &tolerance,
}};

}  // namespace
}  // namespace inferometer
