#include "kernels/decoder/attention_gpu.hpp"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "kernels/attention_decode/decode_launch.hpp"

namespace inferometer::decoder {
namespace {

const std::string kDecodeVariant = "cuda.paged";
const std::string kPrefillVariant = "cuda.flash";
const std::string kMaterializedVariant = "cuda.materialized";
const std::string kAppendVariant = "cuda.paged";

}  // namespace

StepAttention::StepAttention(const DecoderShape& shape, const KvPoolShape& pool_shape, std::byte* pool,
                             const DecoderConfig& config, const StepSizes& sizes, Stream stream, Allocator& allocator)
    : shape_(shape),
      pool_shape_(pool_shape),
      pool_(pool),
      kv_bits_(config.kv_bits),
      sizes_(sizes),
      stream_(stream),
      allocator_(allocator),
      append_(find_variant(KvAppend::kName, kAppendVariant)) {
  if (append_ == nullptr) throw std::runtime_error("decoder: this program has no kv_append/" + kAppendVariant);
  takes_new_ = decode::takes_new_tokens(decode_problem(1, 1, 1));
  if (config.prompt_attention == PromptAttention::flash) return;
  const AttentionPrefillProblem longest = chunk_problem(std::min(sizes.tokens, sizes.block_size), sizes.block_size);
  materialized_.emplace(kMaterializedVariant, longest, AttentionPrefillTensors{}, stream, allocator);
}

// The columns of the block table follow from `context`, the parts that sequences are cut into from `contexts`.
AttentionDecodeProblem StepAttention::decode_problem(std::int64_t rows, std::int64_t longest,
                                                     std::int64_t q_len) const {
  AttentionDecodeProblem p;
  p.batch = rows;
  p.context = sizes_.max_blocks * sizes_.block_size;
  p.contexts.assign(static_cast<std::size_t>(rows), std::min(longest, p.context));
  p.q_len = q_len;
  p.q_heads = shape_.q_heads;
  p.kv_heads = shape_.kv_heads;
  p.head_dim = shape_.head_dim;
  p.block_size = sizes_.block_size;
  p.kv_bits = kv_bits_;
  p.splits = q_len > 1 ? 1 : 0;  // many queries are work enough
  return p;
}

AttentionDecodeTensors StepAttention::decode_tensors(std::int64_t row, std::int64_t layer, const StepArrays& inputs,
                                                     const AttentionTensors& t) const {
  AttentionDecodeTensors tensors;
  tensors.q = t.q;
  tensors.k = pool_ + pool_shape_.k_at(layer);
  tensors.v = pool_ + pool_shape_.v_at(layer);
  if (kv_bits_ != 16) tensors.kv_scales = reinterpret_cast<const std::uint16_t*>(pool_ + pool_shape_.scales_at(layer));
  tensors.seq_lens = inputs.lengths + row;
  tensors.block_table = inputs.table + row * sizes_.max_blocks;
  tensors.o = t.o;
  tensors.lse = t.lse;
  return tensors;
}

void StepAttention::prepare_single(std::int64_t rows, std::int64_t longest) {
  const std::pair key{rows, length_bucket(longest)};
  if (single_.find(key) != single_.end()) return;
  single_.emplace(std::piecewise_construct, std::forward_as_tuple(key),
                  std::forward_as_tuple(kDecodeVariant, decode_problem(rows, key.second, 1), AttentionDecodeTensors{},
                                        stream_, allocator_));
  if (takes_new_) decode::prepare_new_tokens(single_.at(key).launch(stream_));
}

void StepAttention::run_new(std::int64_t rows, std::int64_t longest, std::int64_t layer, const StepArrays& inputs,
                            decode::NewTokens tokens, const AttentionTensors& t, Stream stream) {
  prepare_single(rows, longest);
  const auto& single = single_.at({rows, length_bucket(longest)});
  tokens.k = reinterpret_cast<__half*>(pool_ + pool_shape_.k_at(layer));
  tokens.v = reinterpret_cast<__half*>(pool_ + pool_shape_.v_at(layer));
  decode::launch_new_tokens(single.problem(), decode_tensors(0, layer, inputs, t), tokens, single.launch(stream));
}

void StepAttention::run_single(std::int64_t rows, std::int64_t longest, std::int64_t layer, const StepArrays& inputs,
                               const AttentionTensors& t, Stream stream) {
  prepare_single(rows, longest);
  single_.at({rows, length_bucket(longest)}).run(decode_tensors(0, layer, inputs, t), stream);
}

AttentionPrefillProblem StepAttention::chunk_problem(std::int64_t q_len, std::int64_t kv_len) const {
  AttentionPrefillProblem p;
  p.q_heads = shape_.q_heads;
  p.kv_heads = shape_.kv_heads;
  p.q_len = q_len;
  p.kv_len = kv_len;
  p.head_dim = shape_.head_dim;
  p.causal = true;
  return p;
}

// All chunks at once; the columns of the block table follow from kv_len.
AttentionPrefillProblem StepAttention::prefill_problem(const StepPlan& plan) const {
  AttentionPrefillProblem p =
      chunk_problem(*std::max_element(plan.chunk_q.begin(), plan.chunk_q.end()), sizes_.max_blocks * sizes_.block_size);
  p.batch = plan.chunks();
  p.q_lens = plan.chunk_q;
  p.kv_lens = plan.chunk_kv;
  p.block_size = sizes_.block_size;
  return p;
}

AttentionTensors StepAttention::behind(const AttentionTensors& t, std::int64_t tokens) const {
  const std::int64_t at = tokens * shape_.q_size() * 2;
  return {.q = static_cast<const std::byte*>(t.q) + at,
          .o = static_cast<std::byte*>(t.o) + at,
          .lse = t.lse + tokens * shape_.q_heads};
}

void StepAttention::run_chunks(const StepPlan& plan, std::int64_t layer, const StepArrays& inputs,
                               const AttentionTensors& t, Stream stream) {
  if (kv_bits_ != 16) return run_quantized_chunks(plan, layer, inputs, t, stream);
  if (materialized_) return run_materialized_chunks(plan, layer, t, stream);
  const AttentionPrefillProblem problem = prefill_problem(plan);
  const AttentionPrefillTensors tensors{.q = t.q,
                                        .k = pool_ + pool_shape_.k_at(layer),
                                        .v = pool_ + pool_shape_.v_at(layer),
                                        .cu_q_lens = inputs.chunk_queries,
                                        .cu_kv_lens = inputs.chunk_keys,
                                        .block_table = inputs.table + plan.single_rows * sizes_.max_blocks,
                                        .o = t.o,
                                        .lse = t.lse};
  if (!chunks_) chunks_.emplace(kPrefillVariant, problem, tensors, stream_, allocator_);
  chunks_->run(problem, tensors, stream);
}

void StepAttention::run_materialized_chunks(const StepPlan& plan, std::int64_t layer, const AttentionTensors& t,
                                            Stream stream) const {
  std::int64_t token = 0;
  for (std::size_t chunk = 0; chunk < plan.chunk_q.size(); ++chunk) {
    const std::int64_t slot = plan.chunk_block[chunk] * pool_shape_.block_bytes;
    const AttentionTensors own = behind(t, token);
    materialized_->run(chunk_problem(plan.chunk_q[chunk], plan.chunk_kv[chunk]),
                       {.q = own.q,
                        .k = pool_ + pool_shape_.k_at(layer) + slot,
                        .v = pool_ + pool_shape_.v_at(layer) + slot,
                        .o = own.o,
                        .lse = own.lse},
                       stream);
    token += plan.chunk_q[chunk];
  }
}

void StepAttention::run_quantized_chunks(const StepPlan& plan, std::int64_t layer, const StepArrays& inputs,
                                         const AttentionTensors& t, Stream stream) {
  std::int64_t token = 0;
  for (std::int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
    const std::int64_t q_len = plan.chunk_q[static_cast<std::size_t>(chunk)];
    auto launch = quantized_chunks_.find(q_len);
    if (launch == quantized_chunks_.end()) {
      const AttentionDecodeProblem problem = decode_problem(1, sizes_.max_blocks * sizes_.block_size, q_len);
      launch =
          quantized_chunks_
              .emplace(std::piecewise_construct, std::forward_as_tuple(q_len),
                       std::forward_as_tuple(kDecodeVariant, problem, AttentionDecodeTensors{}, stream_, allocator_))
              .first;
    }
    launch->second.run(decode_tensors(plan.single_rows + chunk, layer, inputs, behind(t, token)), stream);
    token += q_len;
  }
}

// Each token is a sequence of its own whose only block is the one that it goes to: the slots before its own count as
// what is stored already.
void StepAttention::append(const void* k, const void* v, const std::int32_t* blocks, const std::int32_t* slots,
                           std::int64_t tokens, std::int64_t layer, Stream stream) const {
  KvAppendProblem p;
  p.batch = tokens;
  p.context = sizes_.block_size - 1;
  p.kv_heads = shape_.kv_heads;
  p.head_dim = shape_.head_dim;
  p.block_size = sizes_.block_size;
  p.kv_bits = kv_bits_;
  const KvAppendTensors tensors{.k_new = k,
                                .v_new = v,
                                .seq_lens = slots,
                                .block_table = blocks,
                                .k = pool_ + pool_shape_.k_at(layer),
                                .v = pool_ + pool_shape_.v_at(layer),
                                .kv_scales = reinterpret_cast<std::uint16_t*>(pool_ + pool_shape_.scales_at(layer))};
  if (const auto sentence = append_->unsupported(&p))
    throw std::runtime_error("decoder: kv_append/" + kAppendVariant + ": " + *sentence);
  Launch launch;
  launch.stream = stream;
  append_->run(&p, &tensors, launch);
}

}  // namespace inferometer::decoder
