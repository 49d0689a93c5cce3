// A decoder's weights in GPU memory: matrices that read the same input are one, [q; k; v] and gate with up.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer::decoder {

struct LayerWeights {
  std::shared_ptr<void> attention_norm;  // vectors: f16
  std::shared_ptr<void> mlp_norm;
  std::shared_ptr<void> qkv_bias;  // null where the shape has none
  std::shared_ptr<void> q_norm;
  std::shared_ptr<void> k_norm;
  Matrix qkv;      // [q_size + 2 kv_size, hidden]
  Matrix o;        // [hidden, q_size]
  Matrix gate_up;  // [2 intermediate, hidden], 8 rows of each in turns (kernels/matmul/product_ends.hpp)
  Matrix down;     // [hidden, intermediate]
};

struct GpuWeights {
  std::shared_ptr<void> embedding;  // [vocabulary, hidden] f16
  std::shared_ptr<void> final_norm;
  Matrix head;  // 16 bits, as quantised checkpoints leave it
  std::vector<LayerWeights> layers;
  std::size_t bytes = 0;  // of all of them
};

// Seeded weights are made in place, others uploaded. Waits for the stream.
GpuWeights load_weights(const DecoderWeights& from, std::int64_t bits, Stream stream, Allocator& allocator);

}  // namespace inferometer::decoder
