// The products of wide_chain.hpp on the GPU, for a decoder's steps of several tokens. Blocks wait for each other, as
// those of product_chain_gpu.hpp, and what is said there of launches, turns, MPS and MIG holds here.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/decoder/wide_chain.hpp"

namespace inferometer::decoder {

inline constexpr std::int64_t kMostWideTokens = 64;

// For tests/lab: steps of more tokens do not run it.
inline std::int64_t lab_wide_tokens = kMostWideTokens;

// A sentence where the current GPU, this shape or weights of so many bits are not the kernel's: it is for compute
// capability 9.0 without MPS, for 16 and 4 bits, for two layers or more, and for rows and k of every product that are
// whole bands and whole stages (64 and 64; 128 of k with 4 bits). Throws CudaError.
std::optional<std::string> wide_chain_unsupported(const ChainShape& shape, std::int64_t bits, std::int64_t layers);

// For one stream, as ProductChain. Vectors are of each token.
class WideChain {
 public:
  // Throws std::runtime_error with the sentence of wide_chain_unsupported, and CudaError.
  WideChain(const ChainShape& shape, std::int64_t bits, std::int64_t layers, float eps, Stream stream,
            Allocator& allocator);

  // Queues a layer's products of 1 to kMostWideTokens tokens; see ProductChain::run.
  void run(std::int64_t layer, const ChainLayer& weights, const ChainVectors& vectors, std::int64_t tokens,
           Stream stream) const;

  // As ProductChain::reset.
  void reset(Stream stream) const noexcept;

  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  std::uint8_t* exchange(std::int64_t layer) const;

  ChainShape shape_;
  std::int64_t bits_;
  std::int64_t layers_;
  float eps_;
  std::size_t exchange_bytes_ = 0;
  std::size_t workspace_bytes_ = 0;
  std::shared_ptr<void> exchanges_[3];  // counters and sums
  std::shared_ptr<void> squares_[2];
  std::shared_ptr<void> x_[kChainProducts];  // the first is the caller's
};

}  // namespace inferometer::decoder
