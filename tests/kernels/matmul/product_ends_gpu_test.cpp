// Products that end in SwiGLU, or in a residual stream and the sums of squares of its norm, beside the plain ones,
// which the judge has passed.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/matmul/f16_sm90_kernels.hpp"
#include "kernels/matmul/sm90_launch.hpp"
#include "kernels/matmul/sm90_plan.hpp"
#include "kernels/matmul/sm90_tile_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr double kHalf = 0x1p-11;  // unit roundoff of f16
constexpr float kEps = 1e-5F;

// Tensors in guarded memory, and their values on the host.
class Tensors {
 public:
  Tensors() : device_(gpu()), memory_(*device_) {}
  ~Tensors() { CHECK(memory_.violations() == std::vector<std::string>()); }
  Tensors(const Tensors&) = delete;
  Tensors& operator=(const Tensors&) = delete;

  Stream stream() const { return device_->launch().stream; }
  Allocator& allocator() { return memory_; }

  void* normal(Dtype dtype, std::int64_t elements, double stddev) {
    void* const data = empty(elements * static_cast<std::int64_t>(dtype_bytes(dtype)));
    launch_fill_normal(dtype, data, elements, stream_key(1, memory_of_test_.size()), normal_scale(stddev), 0, stream());
    return data;
  }
  void* floats(const std::vector<float>& values) {
    void* const data = empty(std::ssize(values) * 4);
    device_->synchronize();
    INFEROMETER_CUDA_CHECK(cudaMemcpy(data, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
    return data;
  }
  // NaN in every type.
  void* empty(std::int64_t bytes) {
    memory_of_test_.push_back(memory_.allocate(static_cast<std::size_t>(bytes), "test"));
    void* const data = memory_of_test_.back().get();
    INFEROMETER_CUDA_CHECK(cudaMemsetAsync(data, 0xff, static_cast<std::size_t>(bytes), stream()));
    return data;
  }
  std::vector<float> halves(const void* data, std::int64_t elements) const {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(elements));
    device_->synchronize();
    device_->copy_to_host(bits.data(), data, bits.size() * 2);
    std::vector<float> values(bits.size());
    std::transform(bits.begin(), bits.end(), values.begin(), &f16_value);
    return values;
  }
  std::vector<float> floats(const void* data, std::int64_t elements) const {
    std::vector<float> values(static_cast<std::size_t>(elements));
    device_->synchronize();
    device_->copy_to_host(values.data(), data, values.size() * 4);
    return values;
  }

 private:
  std::unique_ptr<Device> device_;
  GuardedMemory memory_;
  std::vector<std::shared_ptr<void>> memory_of_test_;
};

// f32 sums of k terms around 1 in any order, and each rounded to f16 in `plain` alone.
double sum_error(std::int64_t k) { return 8.0 * static_cast<double>(k) * 0x1p-24; }

// `y` [m, n / 2] against silu(f g) f u of `plain` [m, n], whose sums were rounded: |silu'| is at most 1.1.
double worst_gated(const std::vector<float>& y, const std::vector<float>& plain, const std::vector<float>& factors,
                   std::int64_t n, std::int64_t k) {
  double worst = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto features = static_cast<std::size_t>(n / 2);
    const std::size_t token = i / features;
    const std::size_t row = i % features / 8 * 16 + i % features % 8;
    const double f = factors.empty() ? 1 : factors[token];
    const double gate = f * plain[token * 2 * features + row];
    const double up = f * plain[token * 2 * features + row + 8];
    const double expected = gate / (1 + std::exp(-gate)) * up;
    const double bound = (1.1 * std::abs(gate * up) + 3 * std::abs(expected)) * kHalf +
                         sum_error(k) * f * (std::abs(gate) + std::abs(up)) + 0x1p-24;
    const double error = std::abs(y[i] - expected) / bound;
    worst = std::max(worst, std::isfinite(error) ? error : HUGE_VAL);
  }
  return worst;
}

double worst_of(const std::vector<float>& got, const std::vector<double>& expected, const std::vector<double>& bound) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - expected[i]) / bound[i];
    worst = std::max(worst, std::isfinite(error) ? error : HUGE_VAL);
  }
  return worst;
}

// A matrix [n, k] of `bits` bits and x [m, k].
struct Product {
  Product(Tensors& tensors, std::int64_t tokens, std::int64_t rows, std::int64_t columns, std::int64_t bits)
      : t(tensors), m(tokens), products(t.stream(), t.allocator()) {
    x = t.normal(Dtype::f16, m * columns, 1);
    void* const w = t.normal(Dtype::f16, rows * columns, 1 / std::sqrt(static_cast<double>(columns)));
    matrix.n = rows;
    matrix.k = columns;
    matrix.bits = bits;
    matrix.weights = bits == 16 ? std::shared_ptr<void>(w, [](void*) {})
                                : decoder::quantize_matrix(w, rows, columns, bits, t.stream(), t.allocator());
    void* const y = t.empty(m * rows * 2);
    products.run(matrix, x, y, m, t.stream());
    plain = t.halves(y, m * rows);
  }

  Tensors& t;
  std::int64_t m;
  decoder::MatrixProducts products;
  void* x = nullptr;
  decoder::Matrix matrix;
  std::vector<float> plain;
};

// Sums of squares of a token's parts, more than a warp has lanes, and the factor that follows from them.
struct Norm {
  Norm(Tensors& t, std::int64_t m, std::int64_t hidden) {
    std::vector<float> squares;
    std::vector<float> scale;
    for (std::int64_t token = 0; token < m; ++token) {
      scale.push_back((0.5F + 0.125F * static_cast<float>(token % 5)) / kLateHeadroom);
      float sum = 0;
      for (std::int64_t part = 0; part < 35; ++part) {
        squares.push_back(static_cast<float>(1 + (token + part) % 7));
        sum += squares.back();
      }
      inverse.push_back(1 / std::sqrt(sum / static_cast<float>(hidden) + kEps));
      factors.push_back(inverse.back() / (scale.back() * kLateHeadroom));
    }
    left = t.empty(m * 4);
    norm = {.squares = static_cast<float*>(t.floats(squares)),
            .scale = static_cast<float*>(t.floats(scale)),
            .inverse = static_cast<float*>(left),
            .parts = 35,
            .hidden = static_cast<int>(hidden),
            .eps = kEps};
  }

  LateNorm norm;
  std::vector<float> inverse;
  std::vector<float> factors;
  void* left;
};

void check_gated(Product& p, const std::vector<float>& factors, const LateNorm& norm) {
  void* const y = p.t.empty(p.m * p.matrix.n);
  p.products.run_gated(p.matrix, p.x, y, p.m, norm, p.t.stream());
  CHECK(worst_gated(p.t.halves(y, p.m * p.matrix.n / 2), p.plain, factors, p.matrix.n, p.matrix.k) <= 1);
}

TEMPLATE_TEST_CASE_SIG("product ends: a gated product is SwiGLU of the plain one", "[matmul][decoder][gpu]",
                       ((std::int64_t bits), bits), 16, 8, 4) {
  if (!current_gpu_limits().clusters) return;
  for (const std::int64_t m : thinned<std::int64_t>({1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 129, 200, 257, 700}, 4))
    for (const std::int64_t n : thinned<std::int64_t>({16, 304, 2064}, 2)) {
      Tensors tensors;
      Product product(tensors, m, n, 520, bits);
      INFO("bits " << bits << ", " << m << " x " << n);
      check_gated(product, {}, {});
      if (!product.products.has_late_norm(product.matrix, m)) continue;
      const Norm late(tensors, m, 48);
      check_gated(product, late.factors, late.norm);
      const std::vector<float> left = tensors.floats(late.left, m);
      for (std::size_t i = 0; i < left.size(); ++i) CHECK(left[i] == Approx(late.inverse[i]).epsilon(1e-5));
    }
}

// n: 1456 ends within tiles; 1536 is a multiple of the tiles of pairs of blocks, which ask for that; of 1100 x 5760
// blocks take several tiles.
TEMPLATE_TEST_CASE_SIG("product ends: a gated product of 16 bits is right by every plan", "[matmul][decoder][gpu]",
                       ((std::int64_t m, std::int64_t n), m, n), (1, 1456), (17, 1456), (65, 1456), (129, 1456),
                       (257, 1456), (65, 1536), (129, 1536), (1100, 5760)) {
  if (!current_gpu_limits().clusters) return;
  Tensors tensors;
  const MatmulProblem problem{.m = m, .n = n, .k = under_sanitizer() && m > 1000 ? 136 : 1096};
  const Product product(tensors, m, n, problem.k, 16);
  bool has_pairs = false;
  for (const Sm90Plan& plan : sm90_plans(problem, current_gpu_limits())) {
    void* const y = tensors.empty(m * n);
    const void* const kernel = gated_f16_sm90_kernel(plan.tile);
    GatedEnd end;
    prepare_sm90(kernel, plan);
    launch_sm90(kernel,
                {.x = product.x,
                 .w = product.matrix.weights.get(),
                 .y = y,
                 .operand = Dtype::f16,
                 .result = Dtype::f16,
                 .m = m,
                 .n = n,
                 .k = problem.k,
                 .gated = true},
                plan, &end, tensors.stream());
    const Sm90Tile& tile = kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile;
    has_pairs = has_pairs || tile.pairs;
    INFO(m << " x " << n << ", " << (tile.weights_are_a ? "W as A, " : "X as A, ") << tile.tile_b
           << " rows of B, split " << plan.work.split << ", whole tiles " << plan.work.whole << " of "
           << plan.work.order.tiles());
    CHECK(worst_gated(tensors.halves(y, m * n / 2), product.plain, {}, n, problem.k) <= 1);
  }
  CHECK(has_pairs == (n == 1536));
}

TEMPLATE_TEST_CASE_SIG("product ends: a residual is added to, and leaves what its norm needs", "[matmul][decoder][gpu]",
                       ((std::int64_t bits), bits), 16, 8, 4) {
  if (!current_gpu_limits().clusters) return;
  bool any = false;
  for (const std::int64_t m : thinned<std::int64_t>({1, 2, 7, 8, 9, 16, 17, 31, 32}, 3))
    for (const std::int64_t n : thinned<std::int64_t>({8, 152, 520, 2064}, 2))
      for (const std::int64_t k : {520, 4104}) {
        Tensors tensors;
        Product product(tensors, m, n, k, bits);
        if (!product.products.has_late_norm(product.matrix, m)) continue;
        any = true;
        INFO("bits " << bits << ", " << m << " x " << n << " x " << k);
        void* const h = tensors.normal(Dtype::f32, m * n, 3);
        void* const gain = tensors.normal(Dtype::f16, n, 1);
        const std::vector<float> before = tensors.floats(h, m * n);
        const std::vector<float> gains = tensors.halves(gain, n);
        const Norm scales(tensors, m, 48);
        const int parts = product.products.residual_parts(product.matrix, m);
        void* const x = tensors.empty(m * n * 2);
        void* const squares = tensors.empty(m * parts * 4);
        product.products.run_residual(product.matrix, product.x,
                                      {.h = static_cast<float*>(h),
                                       .gain = static_cast<const __half*>(gain),
                                       .scale = scales.norm.scale,
                                       .x = static_cast<__half*>(x),
                                       .squares = static_cast<float*>(squares)},
                                      m, tensors.stream());
        const std::vector<float> after = tensors.floats(h, m * n);
        const std::vector<float> sums = tensors.floats(squares, m * parts);
        const std::vector<float> scale = tensors.floats(scales.norm.scale, m);
        std::vector<double> expected;
        std::vector<double> bound;
        std::vector<double> next;
        std::vector<double> next_bound;
        for (std::size_t i = 0; i < after.size(); ++i) {
          const auto column = i % static_cast<std::size_t>(n);
          const auto token = i / static_cast<std::size_t>(n);
          expected.push_back(double{before[i]} + product.plain[i]);
          bound.push_back(2 * kHalf * std::abs(product.plain[i]) + sum_error(k));
          next.push_back(double{after[i]} * gains[column] * scale[token] * kLateHeadroom);
          next_bound.push_back(1.01 * kHalf * std::abs(next.back()) + 0x1p-24);
        }
        CHECK(worst_of(after, expected, bound) <= 1);
        CHECK(worst_of(tensors.halves(x, m * n), next, next_bound) <= 1);
        for (std::int64_t token = 0; token < m; ++token) {
          double of_h = 0;
          double of_parts = 0;
          for (std::int64_t i = 0; i < n; ++i)
            of_h += std::pow(double{after[static_cast<std::size_t>(token * n + i)]}, 2);
          for (std::int64_t i = 0; i < parts; ++i) of_parts += sums[static_cast<std::size_t>(token * parts + i)];
          CHECK(of_parts == Approx(of_h).epsilon(1e-5));
        }
      }
  CHECK(any);
}

TEST_CASE("product ends: what no kernel has is refused before a launch", "[matmul][decoder][gpu]") {
  if (!current_gpu_limits().clusters) return;
  const std::string late =
      "a product with a late norm or a residual end: m must be one that has_late_norm allows, got ";
  for (const std::int64_t bits : {16, 8, 4}) {
    INFO("bits " << bits);
    Tensors tensors;
    const std::int64_t many = bits == 16 ? 33 : 17;
    Product product(tensors, many, 304, 520, bits);
    REQUIRE_FALSE(product.products.has_late_norm(product.matrix, many));
    const Norm norm(tensors, many, 48);
    void* const y = tensors.empty(many * 304);
    CHECK_THROWS_WITH(product.products.run_gated(product.matrix, product.x, y, many, norm.norm, tensors.stream()),
                      late + std::to_string(many));
    CHECK_THROWS_WITH(product.products.prepare_residual(product.matrix, many), late + std::to_string(many));
    Product ragged(tensors, 1, 12, 520, bits);
    REQUIRE(ragged.products.has_late_norm(ragged.matrix, 1));
    CHECK_THROWS_WITH(ragged.products.prepare_residual(ragged.matrix, 1),
                      "a residual product: n must be a multiple of 8, got 12");
    CHECK_THROWS_WITH(ragged.products.prepare_gated(ragged.matrix, 1),
                      "a gated product: n must be a multiple of 16, got 12");
  }
}

}  // namespace
}  // namespace inferometer::test
