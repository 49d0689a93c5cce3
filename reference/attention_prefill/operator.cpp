// attention_prefill: its fields, and which problems there are.
#include "harness/operator/operator.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "reference/attention_prefill/cost.hpp"
#include "reference/attention_prefill/expected.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/attention_prefill/tensors.hpp"
#include "reference/common/attention_fields.hpp"
#include "reference/kv_cache/fields.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();  // prefix sums and block table are i32

const std::vector<Field<Problem>> kFirstFields = {
    {.name = "batch", .member = &Problem::batch, .doc = "sequences"},
    {.name = "q_heads", .member = &Problem::q_heads, .doc = "query heads, a multiple of kv_heads"},
    {.name = "kv_heads", .member = &Problem::kv_heads, .doc = "key and value heads"},
    {.name = "q_len", .member = &Problem::q_len, .doc = "queries per sequence, in tokens; with q_lens: their maximum"},
    {.name = "kv_len",
     .member = &Problem::kv_len,
     .doc = "keys per sequence, in tokens; with kv_lens: their maximum",
     .min = 0},
    {.name = "q_lens",
     .member = &Problem::q_lens,
     .doc = "queries of each sequence, 0 allowed; with kv_lens, empty: q_len for all",
     .min = 0},
    {.name = "kv_lens",
     .member = &Problem::kv_lens,
     .doc = "keys of each sequence, 0 allowed; with q_lens, empty: kv_len for all",
     .min = 0},
    {.name = "head_dim",
     .member = &Problem::head_dim,
     .doc = "elements of one head of Q and K, a multiple of 8",
     .min = 8,
     .max = 256},
    {.name = "v_head_dim",
     .member = &Problem::v_head_dim,
     .doc = "elements of one head of V and O, a multiple of 8; 0: head_dim",
     .min = 0,
     .max = 256},
    {.name = "block_size",
     .member = &Problem::block_size,
     .doc = "keys in a block of a paged cache; 0: contiguous keys and values",
     .min = 0,
     .max = 512},
};

const std::vector<Field<Problem>> kLastFields = {
    {.name = "causal",
     .member = &Problem::causal,
     .doc = "query i of a sequence sees keys j <= i + its kv_len - its q_len only"},
    {.name = "dtype",
     .member = &Problem::dtype,
     .doc = "element type of Q, K, V and O",
     .dtypes = {Dtype::f16, Dtype::bf16, Dtype::f32}},
};

// A length of 1 beside a list is the default of one that was not given.
void complete(Problem& p) {
  if (!p.q_lens.empty() && p.q_len == 1) p.q_len = longest_context(p.q_lens);
  if (!p.kv_lens.empty() && p.kv_len == 1) p.kv_len = longest_context(p.kv_lens);
}

void check_lengths(const Problem& p, const std::string& name, const std::vector<std::int64_t>& lengths,
                   const std::string& maximum_name, std::int64_t maximum) {
  if (static_cast<std::int64_t>(lengths.size()) != p.batch)
    throw ProblemError(name, name + " must hold one length for each of the " + std::to_string(p.batch) +
                                 " sequences of batch, as q_lens and kv_lens go together, got " +
                                 std::to_string(lengths.size()));
  if (maximum != longest_context(lengths))
    throw ProblemError(maximum_name, maximum_name + " must be the maximum of " + name + ", " +
                                         std::to_string(longest_context(lengths)) + ", got " + std::to_string(maximum));
  std::int64_t left = kInt32Max;
  for (const std::int64_t length : lengths) {
    if (length > left)
      throw ProblemError(name, name + " must sum up to at most " + std::to_string(kInt32Max) + ", got more");
    left -= length;
  }
}

void check_head(const std::string& name, std::int64_t dim) {
  if (dim % 8 != 0) throw ProblemError(name, name + " must be a multiple of 8, got " + std::to_string(dim));
}

void check_paging(const Problem& p) {
  if (!p.paged()) return;
  checked_product("kv_len", {p.batch, p.kv_len, 2});
  const std::int64_t blocks = pool_blocks(key_lengths(p), p.block_size);
  check_pool_blocks(blocks);
  checked_product("block_size", {blocks, p.block_size, std::max(p.k_stride(), p.v_stride()), 4});
}

void validate(const Problem& p) {
  check_head("head_dim", p.head_dim);
  check_head("v_head_dim", p.v_head_dim);
  check_soft_cap(p.soft_cap);
  if (p.window_left >= 0 && !p.causal)
    throw ProblemError("window_left", "window_left must be -1 without causal, got " + std::to_string(p.window_left));
  check_heads(p.q_heads, p.kv_heads);
  if (!p.q_lens.empty() || !p.kv_lens.empty()) {
    check_lengths(p, "q_lens", p.q_lens, "q_len", p.q_len);
    check_lengths(p, "kv_lens", p.kv_lens, "kv_len", p.kv_len);
    if (p.q_len == 0) throw ProblemError("q_lens", "q_lens must hold a length above 0, got zeros only");
  }
  check_row_stride("k_row_stride", p.k_row_stride, p.kv_heads, p.head_dim);
  check_row_stride("v_row_stride", p.v_row_stride, p.kv_heads, p.v_dim());
  // In bytes of f32, so that no variant's offset into a tensor, or into the scores of all heads, can overflow.
  checked_product("q_len", {p.batch, p.q_len, p.q_heads, std::max(p.head_dim, p.v_dim()), 4});
  checked_product("kv_len", {p.batch, p.kv_len, std::max(p.k_stride(), p.v_stride()), 4});
  checked_product("kv_len", {p.batch, p.q_heads, p.q_len, p.kv_len, 4});
  check_paging(p);
}

const RegisterOperator<AttentionPrefill> registered{{
    .summary = "softmax(Q K^T / sqrt(head_dim)) V per head, and the log-sum-exp of each row of scores",
    .fields = joined_fields({kFirstFields, row_stride_fields<Problem>(), score_fields<Problem>(), kLastFields}),
    .aliases = {{.name = "seq_len", .targets = {"q_len", "kv_len"}}},
    .complete = &complete,
    .validate = &validate,
    .tensors = &prefill_tensors,
    .add_contents = &add_prefill_contents,
    .bind = &bind_prefill,
    .work = &prefill_work,
    .expect = &expect_attention_prefill,
    .reference = "the equation in f64",
    .tolerance = &prefill_tolerance,
}};

}  // namespace
}  // namespace inferometer
