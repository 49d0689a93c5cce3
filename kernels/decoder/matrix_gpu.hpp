// The decoder's linear layers on the GPU: weights as the kernels of `matmul` want them, and a plan for each number of
// tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/operator_launch.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer::decoder {

// Weights [n, k].
struct Matrix {
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t bits = 16;
  std::shared_ptr<void> weights;  // 16: f16, row by row; 8, 4: a state of prepare_weight_only

  const void* data() const;  // as they lie in memory
  std::int64_t bytes() const;
};

// y [m, n] = x [m, k] W^T, f16.
class MatrixProducts {
 public:
  MatrixProducts(Stream stream, Allocator& allocator);

  // Makes the plan for `m` tokens, which needs no other call then; `run` does it where it is missing. Not within a
  // capture.
  void prepare(const Matrix& matrix, std::int64_t m);
  void run(const Matrix& matrix, const void* x, void* y, std::int64_t m, Stream stream);

 private:
  using Key = std::tuple<const void*, std::int64_t, std::int64_t, std::int64_t>;  // weights (8, 4), n, k, m

  Stream stream_;
  Allocator& allocator_;
  const char* variant_;                             // of 16-bit products
  std::map<Key, OperatorLaunch<Matmul>> products_;  // of all matrices of a size
  std::map<Key, std::shared_ptr<void>> quantized_;  // states, which hold their weights
};

// Quantises w [n, k] f16 to `bits` bits by the rule of reference/decoder/problem.hpp, and packs it. Waits for the
// stream: what it needs meanwhile is freed.
std::shared_ptr<void> quantize_matrix(const void* w, std::int64_t n, std::int64_t k, std::int64_t bits, Stream stream,
                                      Allocator& allocator);

}  // namespace inferometer::decoder
