// The layers of a decoder, one kernel after the other, over the inputs of one step.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/attention_gpu.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/decoder/residual_norm.hpp"
#include "kernels/decoder/step_inputs.hpp"
#include "kernels/decoder/weights_gpu.hpp"

namespace inferometer::decoder {

// What a launch of the layers computes: a step's plan, or that plan padded to a bucket.
struct ForwardStep {
  std::int64_t tokens = 0;
  std::int64_t single_rows = 0;
  std::int64_t longest_single = 0;
  std::int64_t samples = 0;
  const StepPlan* chunks = nullptr;  // null: none

  static ForwardStep of(const StepPlan& plan);
  static ForwardStep padded(const StepPlan& plan, std::int64_t rows);  // of single rows that sample
};

class DecoderForward {
 public:
  DecoderForward(const DecoderWeights& weights, const DecoderConfig& config, const StepSizes& sizes, Stream stream,
                 Allocator& allocator);

  // Everything that a capture of run() would have to allocate, for steps without chunks.
  void prepare(const ForwardStep& step);
  void run(const ForwardStep& step, const StepArrays& inputs, Stream stream);
  // Whether run() needs a ChainTurn: steps of one token, if the decoder has the kernel for them.
  bool runs_chain(const ForwardStep& step) const { return chain_.has_value() && step.tokens == 1; }

  const KvPoolShape& pool_shape() const { return pool_shape_; }
  std::byte* pool() const { return static_cast<std::byte*>(pool_.get()); }
  TokenId* next() const { return static_cast<TokenId*>(next_.get()); }                // [rows]
  const __half* logits() const { return static_cast<const __half*>(logits_.get()); }  // [samples, vocabulary]
  std::size_t weight_bytes() const { return weights_.bytes; }
  std::size_t workspace_bytes() const {
    return workspace_bytes_ + (chain_.has_value() ? chain_->workspace_bytes() : 0);
  }

 private:
  std::shared_ptr<void> scratch(std::int64_t elements, std::size_t element_bytes);
  void upload_turns(std::int64_t positions);
  // Whether all products of so many tokens that could take norms' work on themselves do.
  bool has_late_norms(std::int64_t tokens);
  // Of what the product in front of a late norm leaves; `number`: the first or the second of a layer.
  LateNorm late_norm(const Matrix& in_front, std::int64_t tokens, int number);
  ResidualEnd residual_end(const std::shared_ptr<void>& gain, int number) const;
  Norm norm(const std::shared_ptr<void>& gain) const;
  void run_layers(const ForwardStep& step, const StepArrays& inputs, Stream stream);
  void run_attention(const ForwardStep& step, std::int64_t layer, const StepArrays& inputs, Stream stream);
  void run_mlp(const ForwardStep& step, std::int64_t layer, Stream stream);
  void run_chain(std::int64_t layer, Stream stream);
  void run_head(const ForwardStep& step, const StepArrays& inputs, Stream stream);

  DecoderShape shape_;
  DecoderConfig config_;
  StepSizes sizes_;
  Stream stream_;
  Allocator& allocator_;
  std::size_t workspace_bytes_ = 0;
  KvPoolShape pool_shape_;
  std::shared_ptr<void> pool_;
  GpuWeights weights_;
  MatrixProducts products_;
  std::optional<ProductChain> chain_;  // where chain_unsupported has nothing against the shape and its weights
  StepAttention attention_;
  std::shared_ptr<void> turns_;        // RoPE: [max_length, head_dim / 2] cosine and sine
  std::shared_ptr<void> residual_;     // [tokens, hidden] f32
  std::shared_ptr<void> normed_;       // [tokens, hidden], as the rest f16
  std::shared_ptr<void> delta_;        // [tokens, hidden]  what a half layer adds to the residual stream
  std::shared_ptr<void> squares_;      // [kMostLateTokens, parts] f32, of late norms
  std::shared_ptr<void> inverse_[2];   // [kMostLateTokens] f32: 1 / rms of the first and the second norm of a layer
  std::map<std::int64_t, bool> late_;  // has_late_norms by tokens
  std::shared_ptr<void> qkv_;          // [tokens, q_size + 2 kv_size]
  std::shared_ptr<void> q_;            // [tokens, q_size]
  std::shared_ptr<void> k_new_;        // [tokens, kv_size], quantised pools
  std::shared_ptr<void> v_new_;
  std::shared_ptr<void> attended_;  // [tokens, q_size]
  std::shared_ptr<void> lse_;       // [tokens, q_heads] f32
  std::shared_ptr<void> gate_up_;   // [tokens, 2 intermediate], where products do not end in SwiGLU
  std::shared_ptr<void> active_;    // [tokens, intermediate]
  std::shared_ptr<void> last_;      // [rows, hidden]
  std::shared_ptr<void> logits_;    // [rows, vocabulary]
  std::shared_ptr<void> next_;      // [rows] i32
  std::shared_ptr<void> blocks_;    // [tokens] i32, quantised pools
  std::shared_ptr<void> slots_;
};

}  // namespace inferometer::decoder
