// The decoder's linear layers on the GPU: weights as the kernels of `matmul` want them, and a plan for each number of
// tokens.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "harness/operator/variant.hpp"
#include "kernels/decoder/operator_launch.hpp"
#include "kernels/matmul/product_ends.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer::decoder {

// Weights [n, k].
struct Matrix {
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t bits = 16;
  std::shared_ptr<void> weights;  // 16: f16, row by row; 8, 4: a state of prepare_weight_only

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

  // Other ends (kernels/matmul/product_ends.hpp), prepared as the plain product is. A gated one, which needs
  // has_gated(): y [m, n / 2]. With has_late_norm() for `m` tokens it may have a norm, and a product may end in a
  // residual; `end.parts` is filled in. std::invalid_argument otherwise.
  bool has_gated() const { return on_sm90_; }
  bool has_late_norm(const Matrix& matrix, std::int64_t m) const;
  void prepare_gated(const Matrix& matrix, std::int64_t m);
  void run_gated(const Matrix& matrix, const void* x, void* y, std::int64_t m, const LateNorm& norm, Stream stream);
  void prepare_residual(const Matrix& matrix, std::int64_t m);
  void run_residual(const Matrix& matrix, const void* x, ResidualEnd end, std::int64_t m, Stream stream);
  int residual_parts(const Matrix& matrix, std::int64_t m);

 private:
  using Key = std::tuple<const void*, std::int64_t, std::int64_t, std::int64_t>;  // weights (8, 4), n, k, m
  static Key key_of(const Matrix& matrix, std::int64_t m);

  Stream stream_;
  Allocator& allocator_;
  bool on_sm90_;
  std::map<Key, OperatorLaunch<Matmul>> products_;  // of all matrices of a size
  std::map<Key, std::shared_ptr<void>> quantized_;  // states, which hold their weights
  std::map<Key, std::shared_ptr<void>> gated_;      // states; of 16-bit products for all matrices of a size
  std::map<Key, std::shared_ptr<void>> residual_;
};

// Quantises w [n, k] f16 to `bits` bits by the rule of reference/decoder/problem.hpp, and packs it. Waits for the
// stream: what it needs meanwhile is freed.
std::shared_ptr<void> quantize_matrix(const void* w, std::int64_t n, std::int64_t k, std::int64_t bits, Stream stream,
                                      Allocator& allocator);

}  // namespace inferometer::decoder
