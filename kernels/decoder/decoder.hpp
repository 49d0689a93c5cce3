// A decoder on the GPU (reference/decoder/problem.hpp says what it computes), with its weights and its KV cache: f16
// activations, weights of 16, 8 or 4 bits, keys and values of 16, 8 or 4 bits. CUDA builds only.
//
// The cache is a pool of blocks that the caller shares out: a row of a step names the blocks of its sequence. A
// contiguous cache is a pool whose blocks are as long as the longest sequence, one for each slot.
//
// One step computes a batch of rows, prompts or chunks of them and single tokens, in any mixture. A step in which every
// row is one token that samples runs as a CUDA graph: rows are padded to the next bucket, and what is padded touches
// neither the pool nor the outputs. For one thread, and one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/operator/variant.hpp"
#include "kernels/serving/step_batch.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {

// How the next token is chosen from the logits l.
struct DecoderSampling {
  double temperature = 0;  // 0: the greatest l, the first among equals; t > 0: with chance softmax(l / t)
  double top_p = 1;        // of the most likely tokens, only as many as have this chance together
  std::uint64_t seed = 1;  // the draw follows from the seed, the sequence and the position alone
};

// How prompts and chunks of them attend to their keys; single tokens go through split flash decoding with both.
// Materialised attention writes out the scores, a chunk at a time. It takes keys from one piece of memory: max_length
// at most block_size, and kv_bits 16. The scores' memory is that of a chunk of a whole block, which grows as its
// square.
enum class PromptAttention : std::uint8_t { flash, materialized };

struct DecoderConfig {
  std::int64_t weight_bits = 16;  // 16, 8, 4: of the matrices in the layers
  std::int64_t kv_bits = 16;      // 16, 8, 4
  std::int64_t block_size = 16;   // tokens of a block of the pool
  std::int64_t num_blocks = 1;
  std::int64_t max_rows = 1;    // of a step
  std::int64_t max_tokens = 1;  // of a step, all rows together
  std::int64_t max_length = 1;  // tokens of a sequence
  bool graphs = true;
  PromptAttention prompt_attention = PromptAttention::flash;
  DecoderSampling sampling = {};
};

// Device memory, in bytes.
struct DecoderMemory {
  std::size_t weights = 0;
  std::size_t kv_pool = 0;
  std::size_t workspace = 0;  // activations, logits, inputs of a step; kernels' own workspaces come on top
};

class CudaDecoder {
 public:
  // Makes or uploads the weights; all work is queued on `stream`. `allocator` may refuse (OutOfMemory). Throws
  // ProblemError naming the field, std::runtime_error where the GPU cannot do it.
  CudaDecoder(const DecoderWeights& weights, const DecoderConfig& config, Stream stream, Allocator& allocator);
  ~CudaDecoder();
  CudaDecoder(const CudaDecoder&) = delete;
  CudaDecoder& operator=(const CudaDecoder&) = delete;

  const DecoderShape& shape() const;
  const DecoderConfig& config() const;
  DecoderMemory memory() const;

  // A whole step: queue_batch, queue_step and finish_step. `next` has an element for each row; those of rows that
  // sample are set. Throws ProblemError for a batch beyond the configuration, before anything is queued.
  void step(const StepBatch& batch, std::span<TokenId> next);

  // Its parts, so that a caller can put other work between them.
  void queue_batch(const StepBatch& batch);   // the copies of blocks, and the inputs to the device
  void queue_step();                          // the computation
  void finish_step(std::span<TokenId> next);  // waits for it

  // The next step's inputs from this one's outputs, on the device: every row decodes its token at the next position.
  // The tables of the last queue_batch must cover it, and every row of that batch have sampled: std::logic_error
  // otherwise. No host work is waited for, so that a whole generation is queued at once.
  void queue_advance();

  // Of the last step: next tokens [rows] on the device, in the order of the batch; rows that do not sample hold -1.
  const TokenId* device_next() const;
  // Logits [rows, vocabulary] of the rows of the last step; zeros for rows that do not sample. Waits.
  std::vector<float> logits() const;

  // All of the KV pool, for tests of what a step may write: each layer's K, then V, then scales.
  std::span<std::byte> device_pool() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inferometer
