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
#include "reference/common/attention_fields.hpp"
#include "reference/kv_cache/fields.hpp"
#include "reference/kv_cache/layout.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();  // seq_lens and block_table are i32

const std::vector<Field<Problem>> kFirstFields = {
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
};

const std::vector<Field<Problem>> kLastFields = {
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

void complete(Problem& p) {
  if (p.context == 0) p.context = longest_context(p.contexts);
}

void check_stride(const Problem& p, const std::string& name, std::int64_t stride) {
  if (stride != 0 && p.kv_bits != 16)
    throw ProblemError(name, name + " must be 0 with kv_bits below 16, got " + std::to_string(stride));
  check_row_stride(name, stride, p.kv_heads, p.head_dim);
  checked_product(name, {p.batch, p.context, stride, 4});
}

void validate(const Problem& p) {
  check_head_dim(p.head_dim);
  check_kv_quantization(p.kv_bits, p.kv_format, p.kv_group_size, p.head_dim);
  check_soft_cap(p.soft_cap);
  check_heads(p.q_heads, p.kv_heads);
  check_contexts(p.batch, p.context, p.contexts);
  if (p.context == 0)
    throw ProblemError("context", p.contexts.empty() ? "context or contexts must be given"
                                                     : "contexts must hold a length above 0, got zeros only");
  // In bytes of f32, so that no offset into a tensor can overflow.
  checked_product("q_heads", {p.batch, p.q_len, p.q_heads, p.head_dim, 4});
  checked_product("context", {p.batch, p.context, p.kv_heads, p.head_dim, 4});
  check_stride(p, "k_row_stride", p.k_row_stride);
  check_stride(p, "v_row_stride", p.v_row_stride);
  if (p.block_size == 0) return;
  check_pool_blocks(pool_blocks(p));
  const std::int64_t row = std::max(p.k_stride(), p.v_stride());
  checked_product("block_size", {pool_blocks(p), p.block_size, row, 4});
}

const RegisterOperator<AttentionDecode> registered{{
    .summary = "the newest queries of each sequence against its contiguous or paged KV cache, and the log-sum-exp",
    .fields = joined_fields(
        {kFirstFields, kv_cache_fields<Problem>(), row_stride_fields<Problem>(), score_fields<Problem>(), kLastFields}),
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
