// attention_decode: its fields, and which problems there are.
#include "harness/operator/operator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/attention_decode/cache_layout.hpp"
#include "reference/attention_decode/cost.hpp"
#include "reference/attention_decode/expected.hpp"
#include "reference/attention_decode/problem.hpp"
#include "reference/attention_decode/quantization_error.hpp"
#include "reference/attention_decode/tensors.hpp"
#include "reference/kv_cache/layout.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();  // seq_lens and block_table are i32
constexpr std::int64_t kRowAlignment = 8;                                     // elements: 16-byte accesses
// Beyond these a cap is no cap, or leaves no score.
constexpr double kLeastSoftCap = 1e-3;
constexpr double kMostSoftCap = 1e6;

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
     .doc = "bits of a stored key or value: 16 (dtype), 8 or 4",
     .min = 4,
     .max = 16},
    {.name = "kv_format",
     .member = &Problem::kv_format,
     .doc = "what 8-bit codes are",
     .words = {"integer", "fp8_e4m3"},
     .default_unsaid = true},
    {.name = "kv_group_size",
     .member = &Problem::kv_group_size,
     .doc = "elements of a head that share a scale: 32, 64 or 128; 0: head_dim",
     .min = 0,
     .max = 128},
    {.name = "k_row_stride",
     .member = &Problem::k_row_stride,
     .doc = "elements from one token of K to the next, with kv_bits 16; 0: kv_heads * head_dim",
     .min = 0},
    {.name = "v_row_stride",
     .member = &Problem::v_row_stride,
     .doc = "elements from one token of V to the next, with kv_bits 16; 0: kv_heads * head_dim",
     .min = 0},
    {.name = "window_left",
     .member = &Problem::window_left,
     .doc = "keys before its own that a query sees; -1: all",
     .min = -1,
     .max = kInt32Max},
    {.name = "soft_cap",
     .member = &Problem::soft_cap,
     .doc = "bound c of scores, s becomes c tanh(s / c); 0: none",
     .real_max = kMostSoftCap},
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

void check_row_stride(const Problem& p, const std::string& name, std::int64_t stride) {
  if (stride == 0) return;
  if (p.kv_bits != 16)
    throw ProblemError(name, name + " must be 0 with kv_bits below 16, got " + std::to_string(stride));
  const std::int64_t heads = p.kv_heads * p.head_dim;
  if (stride % kRowAlignment != 0 || stride < heads)
    throw ProblemError(name, name + " must be 0 or a multiple of 8 from kv_heads * head_dim, " + std::to_string(heads) +
                                 ", on, got " + std::to_string(stride));
  checked_product(name, {p.batch, p.context, stride, 4});
}

void validate(const Problem& p) {
  if (p.head_dim % 8 != 0)
    throw ProblemError("head_dim", "head_dim must be a multiple of 8, got " + std::to_string(p.head_dim));
  check_kv_quantization(p.kv_bits, p.kv_format, p.kv_group_size, p.head_dim);
  if (p.soft_cap != 0 && p.soft_cap < kLeastSoftCap)
    throw ProblemError("soft_cap", "soft_cap must be 0 or at least 0.001, got " + to_string(Value(p.soft_cap)));
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
  check_row_stride(p, "k_row_stride", p.k_row_stride);
  check_row_stride(p, "v_row_stride", p.v_row_stride);
  if (p.block_size == 0) return;
  if (pool_blocks(p) > kInt32Max)
    throw ProblemError("block_size", "the cache must fit " + std::to_string(kInt32Max) +
                                         " blocks, whose numbers are 32-bit, got " + std::to_string(pool_blocks(p)));
  const std::int64_t row = std::max(p.k_stride(), p.v_stride());
  checked_product("block_size", {pool_blocks(p), p.block_size, row, 4});
}

const RegisterOperator<AttentionDecode> registered{{
    .summary = "the newest queries of each sequence against its contiguous or paged KV cache, and the log-sum-exp",
    .fields = kFields,
    .complete = &complete,
    .validate = &validate,
    .tensors = &decode_tensors,
    .add_contents = &add_decode_contents,
    .bind = &bind_decode,
    .work = &decode_work,
    .expect = &expect_attention_decode,
    .reference = "the equation in f64",
    .tolerance = &decode_tolerance,
    .metrics = &decode_metrics,
    .metric_docs = {{"quantization_rel_error",
                     "relative L2 error of the attention output from quantising K and V, on synthetic keys with "
                     "outlier channels (every 32nd channel ten times larger); of the format, not of the kernel"},
                    {"quantization_rel_error_keys", "quantization_rel_error from quantising K alone"}},
    .headline_metrics = {"quantization_rel_error"},
}};

}  // namespace
}  // namespace inferometer
