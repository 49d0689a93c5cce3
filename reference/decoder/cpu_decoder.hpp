// A decoder on the CPU, in f32, with a KV cache: the plain way to generate. Weights are held as they are worth.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "reference/common/eigen.hpp"
#include "reference/decoder/equations.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {

using FloatRows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Keys and values of one sequence: [length, kv_size] in each layer, rounded as a cache of these bits keeps them.
class CpuKvCache {
 public:
  CpuKvCache(const DecoderShape& shape, std::int64_t capacity);

  std::int64_t length() const { return length_; }
  std::int64_t capacity() const { return keys_.front().rows(); }
  void clear() { length_ = 0; }

 private:
  friend class CpuDecoder;
  std::int64_t length_ = 0;
  std::vector<FloatRows> keys_;
  std::vector<FloatRows> values_;
};

class CpuDecoder {
 public:
  CpuDecoder(const DecoderWeights& weights, const DecoderBits& bits, int threads);
  ~CpuDecoder();
  CpuDecoder(const CpuDecoder&) = delete;
  CpuDecoder& operator=(const CpuDecoder&) = delete;

  const DecoderShape& shape() const;

  // Computes tokens that follow those in the cache, and puts them there. Logits of the last one. Throws
  // std::invalid_argument for no token, one outside the vocabulary, or more than the cache has room for.
  std::vector<float> step(std::span<const std::int32_t> tokens, CpuKvCache& cache) const;

 private:
  struct Layer;
  FloatRows attend(const Layer& layer, const FloatRows& normed, std::int64_t number, CpuKvCache& cache) const;
  void store(const FloatRows& rows, FloatRows& cache, std::int64_t position) const;
  void turn(FloatRows& heads, const FloatRows& gain, std::int64_t position) const;
  FloatRows multiply(const FloatRows& x, const FloatRows& w) const;
  FloatRows norm(const FloatRows& x, const FloatRows& gain) const;

  DecoderShape shape_;
  DecoderBits bits_;
  int threads_;
  FloatRows embedding_;
  FloatRows final_norm_;
  FloatRows head_;  // empty: tied
  std::vector<Layer> layers_;
};

// The first of the greatest.
std::int32_t greedy_token(std::span<const float> logits);

}  // namespace inferometer
