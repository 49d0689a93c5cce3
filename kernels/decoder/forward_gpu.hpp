// The layers of a decoder, one kernel after the other, over the inputs of one step.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/attention_gpu.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/decoder/step_inputs.hpp"
#include "kernels/decoder/weight_prefetch.hpp"
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

  const KvPoolShape& pool_shape() const { return pool_shape_; }
  std::byte* pool() const { return static_cast<std::byte*>(pool_.get()); }
  TokenId* next() const { return static_cast<TokenId*>(next_.get()); }                // [rows]
  const __half* logits() const { return static_cast<const __half*>(logits_.get()); }  // [samples, vocabulary]
  std::size_t weight_bytes() const { return weights_.bytes; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::shared_ptr<void> scratch(std::int64_t elements, std::size_t element_bytes);
  void upload_turns(std::int64_t positions);
  // At most `most` bytes of a matrix that a product of so many tokens will read.
  WeightPrefetch prefetch(const Matrix& matrix, std::int64_t tokens, std::int64_t most) const;
  void run_attention(const ForwardStep& step, std::int64_t layer, const StepArrays& inputs, Stream stream);
  void run_mlp(const LayerWeights& weights, std::int64_t tokens, Stream stream);
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
  StepAttention attention_;
  std::shared_ptr<void> turns_;     // RoPE: [max_length, head_dim / 2] cosine and sine
  std::shared_ptr<void> residual_;  // [tokens, hidden] f32
  std::shared_ptr<void> normed_;    // [tokens, hidden], as the rest f16
  std::shared_ptr<void> delta_;     // [tokens, hidden]  what a half layer adds to the residual stream
  std::shared_ptr<void> qkv_;       // [tokens, q_size + 2 kv_size]
  std::shared_ptr<void> q_;         // [tokens, q_size]
  std::shared_ptr<void> k_new_;     // [tokens, kv_size], quantised pools
  std::shared_ptr<void> v_new_;
  std::shared_ptr<void> attended_;  // [tokens, q_size]
  std::shared_ptr<void> lse_;       // [tokens, q_heads] f32
  std::shared_ptr<void> gate_up_;   // [tokens, 2 intermediate]
  std::shared_ptr<void> active_;    // [tokens, intermediate]
  std::shared_ptr<void> last_;      // [rows, hidden]
  std::shared_ptr<void> logits_;    // [rows, vocabulary]
  std::shared_ptr<void> next_;      // [rows] i32
  std::shared_ptr<void> blocks_;    // [tokens] i32, quantised pools
  std::shared_ptr<void> slots_;
};

}  // namespace inferometer::decoder
