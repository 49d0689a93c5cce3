// The products of product_chain.hpp on the GPU, for a decoder's steps of one token.
//
// Blocks wait for what other blocks of their launch send, so all of them must run at once, or none ends:
// - One launch is cooperative: refused where its blocks have no room together. A block that faults ends the kernel
//   with the context's error, as any kernel. NaNs in activations or weights are sent as NaNs and do not hold it up.
// - Launches of a process on one GPU, of whatever streams, follow each other in turns (chain_turn.hpp).
// - Processes that share a GPU without MPS take slices of time, each with the whole GPU. Under MPS their kernels run
//   beside each other and no turn spans them, so chain_unsupported refuses it.
// - MIG: an instance is a GPU with fewer multiprocessors.
#pragma once

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/product_chain.hpp"

namespace inferometer::decoder {

// A sentence where the current GPU, this shape or weights of so many bits are not the kernel's: it is for compute
// capability 9.0 without MPS, for 16 and 4 bits, for two layers or more, for sizes that are multiples of 64 and
// `hidden` of about 64 a multiprocessor at most, and needs room for the longest vector and four stages of weights in
// shared memory. Throws CudaError.
std::optional<std::string> chain_unsupported(const ChainShape& shape, std::int64_t bits, std::int64_t layers);

// Where a launch reads and writes, on the device.
struct ChainVectors {
  const __half* attention = nullptr;  // [attention], read
  float* h = nullptr;                 // [hidden], the residual stream, read and written
  float* inverse = nullptr;           // [1]: 1 / rms(h) at the norm before the attention; written for the next layer
  __half* qkv = nullptr;              // [qkv_rows], written, of the next layer
};

// For one stream: launches of an object come one after the other, layers 0 to layers - 1 and from 0 again. A launch
// makes the exchange of the launch before unsent again, for no block reads that any more; so the one that it uses must
// have been left so.
class ProductChain {
 public:
  // Throws std::runtime_error with the sentence of chain_unsupported, and CudaError.
  ProductChain(const ChainShape& shape, std::int64_t bits, std::int64_t layers, float eps, Stream stream,
               Allocator& allocator);

  // Queues a layer's products; may be captured. In a turn (chain_turn.hpp) of the stream that this, or the graph which
  // it is captured for, is queued on: every run of the graph in one. A graph that runs more than once holds all layers,
  // or a run would read what the one before has sent. Throws CudaError.
  void run(std::int64_t layer, const ChainLayer& weights, const ChainVectors& vectors, Stream stream) const;

  // All exchanges unsent, behind what is queued: for a step that ended, by an error, before its last layer. Otherwise
  // the next one would read what this one sent. Reports errors.
  void reset(Stream stream) const noexcept;

  // Three exchanges, each of 2 (2 hidden + intermediate) + 64 multiprocessors bytes.
  std::size_t workspace_bytes() const { return 3 * exchange_bytes_; }

 private:
  ChainExchange exchange(std::int64_t layer) const;

  ChainShape shape_;
  std::int64_t bits_;
  std::int64_t layers_;
  float eps_;
  int stages_ = 0;
  std::size_t exchange_bytes_ = 0;
  std::shared_ptr<void> exchanges_[3];
};

}  // namespace inferometer::decoder
