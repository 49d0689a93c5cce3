// The attention of a step's rows over the KV pool, and the way of quantised keys into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "harness/operator/variant.hpp"
#include "kernels/attention_decode/new_tokens.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/kv_pool.hpp"
#include "kernels/decoder/operator_launch.hpp"
#include "kernels/decoder/step_inputs.hpp"
#include "reference/attention_decode/problem.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/decoder/problem.hpp"
#include "reference/kv_append/problem.hpp"

namespace inferometer::decoder {

// Dense [tokens, heads, head_dim] f16.
struct AttentionTensors {
  const void* q = nullptr;
  void* o = nullptr;
  float* lse = nullptr;  // [tokens, q_heads], scratch
};

// With 16 bits chunks go through attention_prefill: flash takes all chunks of a step at once, materialised attention
// one after the other, in the same memory for their scores. Quantised, they go through attention_decode as single
// tokens do: then a prompt reads the same codes whether it comes in one piece or in chunks.
class StepAttention {
 public:
  StepAttention(const DecoderShape& shape, const KvPoolShape& pool_shape, std::byte* pool, const DecoderConfig& config,
                const StepSizes& sizes, Stream stream, Allocator& allocator);

  // Single rows 0 to rows - 1, of at most `longest` tokens. `prepare` makes the plan, outside of captures.
  void prepare_single(std::int64_t rows, std::int64_t longest);
  void run_single(std::int64_t rows, std::int64_t longest, std::int64_t layer, const StepArrays& inputs,
                  const AttentionTensors& t, Stream stream);

  // Whether single rows may come as the product of q, k and v left them: run_new then stores k and v in the pool, too.
  bool takes_new() const { return takes_new_; }
  // As run_single; tokens.k and tokens.v are the pool's, t.q is not read.
  void run_new(std::int64_t rows, std::int64_t longest, std::int64_t layer, const StepArrays& inputs,
               decode::NewTokens tokens, const AttentionTensors& t, Stream stream);

  // The plan's chunks. `t` begins with their tokens.
  void run_chunks(const StepPlan& plan, std::int64_t layer, const StepArrays& inputs, const AttentionTensors& t,
                  Stream stream);

  // Quantised pools: tokens' new keys and values, dense, go to `slots` of `blocks` (step_kernels.hpp).
  void append(const void* k, const void* v, const std::int32_t* blocks, const std::int32_t* slots, std::int64_t tokens,
              std::int64_t layer, Stream stream) const;

 private:
  AttentionDecodeProblem decode_problem(std::int64_t rows, std::int64_t longest, std::int64_t q_len) const;
  AttentionDecodeTensors decode_tensors(std::int64_t row, std::int64_t layer, const StepArrays& inputs,
                                        const AttentionTensors& t) const;
  AttentionPrefillProblem chunk_problem(std::int64_t q_len, std::int64_t kv_len) const;
  AttentionPrefillProblem prefill_problem(const StepPlan& plan) const;
  // What is behind the first `tokens` of `t`.
  AttentionTensors behind(const AttentionTensors& t, std::int64_t tokens) const;
  void run_materialized_chunks(const StepPlan& plan, std::int64_t layer, const AttentionTensors& t,
                               Stream stream) const;
  void run_quantized_chunks(const StepPlan& plan, std::int64_t layer, const StepArrays& inputs,
                            const AttentionTensors& t, Stream stream);

  DecoderShape shape_;
  KvPoolShape pool_shape_;
  std::byte* pool_;
  std::int64_t kv_bits_;
  StepSizes sizes_;
  Stream stream_;
  Allocator& allocator_;
  std::map<std::pair<std::int64_t, std::int64_t>, OperatorLaunch<AttentionDecode>> single_;  // by rows, longest
  std::map<std::int64_t, OperatorLaunch<AttentionDecode>> quantized_chunks_;                 // by their tokens
  std::optional<OperatorLaunch<AttentionPrefill>> chunks_;
  std::optional<OperatorLaunch<AttentionPrefill>> materialized_;  // of the longest chunk; empty: flash
  const Variant* append_;
  bool takes_new_ = false;
};

}  // namespace inferometer::decoder
