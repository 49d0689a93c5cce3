// Negative controls: rows that are wrong in the ways norms go wrong must fail the judge.
#include <algorithm>
#include <cmath>
#include <functional>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::run_variant;

namespace {

constexpr std::int64_t kRows = 40;
constexpr std::int64_t kHidden = 896;

using Rows = std::vector<double>;

// A problem, its inputs, and the equation of problem.hpp with its parts exchangeable.
class Judged {
 public:
  Judged(Dtype dtype, bool residual)
      : dtype_(dtype),
        op_(*find_operator("rms_norm")),
        problem_(op_.parse(
            {{"rows", kRows}, {"hidden", kHidden}, {"residual", residual}, {"dtype", std::string(dtype_name(dtype))}})),
        inputs_(op_.tensors(problem_.get()), 1),
        x_(read("x", kRows * kHidden)),
        w_(read("w", kHidden)) {
    if (residual) h_ = read("h", kRows * kHidden);
  }

  // How a kernel may go about it.
  struct Way {
    double eps = 1e-5;
    std::int64_t summed = kHidden;  // elements of a row that enter the mean
    bool gains = true;
    bool norms_the_sum = true;   // else X, as if there were no residual stream
    bool rounds_the_sum = true;  // before the norm
    bool rounds_before_gain = false;
    std::int64_t neighbour = 0;  // whose inverse root a row is given: 1: that of the row before
  };

  Rows sum() const {
    Rows sum = x_;
    for (std::size_t i = 0; i < h_.size(); ++i) sum[i] += h_[i];
    return sum;
  }

  Rows y(const Way& way) const {
    Rows normed = way.norms_the_sum ? sum() : x_;
    if (way.rounds_the_sum) std::transform(normed.begin(), normed.end(), normed.begin(), rounding());
    Rows roots;
    for (std::int64_t row = 0; row < kRows; ++row) {
      double squares = 0;
      for (std::int64_t j = 0; j < way.summed; ++j) squares += std::pow(at(normed, row, j), 2);
      roots.push_back(std::sqrt(squares / static_cast<double>(kHidden) + way.eps));
    }
    for (std::int64_t row = 0; row < kRows; ++row)
      for (std::int64_t j = 0; j < kHidden; ++j) {
        double& element = at(normed, row, j);
        element /= roots[static_cast<std::size_t>((row + way.neighbour) % kRows)];
        if (way.rounds_before_gain) element = rounding()(element);
        if (way.gains) element *= w_[static_cast<std::size_t>(j)];
      }
    return normed;
  }

  Check check(const Rows& y, const Rows& sum) const {
    std::vector<OutputView> views;
    const std::vector<std::uint16_t> y_bits = bits_of(y);
    const std::vector<std::uint16_t> sum_bits = bits_of(sum);
    for (const TensorSpec& spec : inputs_.specs())
      if (spec.role == Role::output)
        views.push_back({.spec = &spec, .data = spec.name == "y" ? y_bits.data() : sum_bits.data()});
    return judge(
        views, op_.expect(problem_.get(), inputs_, 1, 2),
        [this](std::string_view tensor) { return op_.tolerance(problem_.get(), tensor); }, "", 2);
  }

  static double& at(Rows& rows, std::int64_t row, std::int64_t j) {
    return rows[static_cast<std::size_t>(row * kHidden + j)];
  }

 private:
  Rows read(std::string_view name, std::int64_t count) const {
    const std::vector<float> values = inputs_.read(name, 0, count);
    return {values.begin(), values.end()};
  }
  std::function<double(double)> rounding() const {
    return [f16 = dtype_ == Dtype::f16](double value) -> double {
      const auto single = static_cast<float>(value);
      return f16 ? f16_value(f16_bits(single)) : bf16_value(bf16_bits(single));
    };
  }
  std::vector<std::uint16_t> bits_of(const Rows& rows) const {
    std::vector<std::uint16_t> bits(rows.size());
    std::transform(rows.begin(), rows.end(), bits.begin(), [this](double value) {
      return dtype_ == Dtype::f16 ? f16_bits(static_cast<float>(value)) : bf16_bits(static_cast<float>(value));
    });
    return bits;
  }

  Dtype dtype_;
  const Operator& op_;
  std::shared_ptr<const void> problem_;
  Inputs inputs_;
  Rows x_;
  Rows w_;
  Rows h_;
};

}  // namespace

TEST_CASE("rms_norm judge: the equation passes with any rounding that kernels have, and wrong norms fail",
          "[rms_norm][controls]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const bool residual : {false, true}) {
      CAPTURE(dtype_name(dtype), residual);
      const Judged judged(dtype, residual);
      const Rows right = judged.y({});
      const Rows sum = judged.sum();
      const auto passes = [&](const Rows& y) { return judged.check(y, sum).passed; };

      CHECK(passes(right));
      CHECK(passes(judged.y({.rounds_before_gain = true})));
      CHECK(passes(judged.y({.rounds_the_sum = false})));
      CHECK(passes(judged.y({.rounds_the_sum = false, .rounds_before_gain = true})));

      CHECK_FALSE(passes(Rows(right.size())));
      CHECK_FALSE(passes(judged.y({.eps = 0})));
      CHECK_FALSE(passes(judged.y({.eps = 1e-3})));
      CHECK_FALSE(passes(judged.y({.summed = kHidden - 64})));  // a tile left out of the mean
      CHECK_FALSE(passes(judged.y({.gains = false})));
      CHECK_FALSE(passes(judged.y({.neighbour = 1})));
      if (residual) CHECK_FALSE(passes(judged.y({.norms_the_sum = false})));

      const auto fails = [&](const std::function<void(Rows&)>& change) {
        Rows wrong = right;
        change(wrong);
        return !passes(wrong);
      };
      CHECK(fails([](Rows& y) { std::swap_ranges(y.begin(), y.begin() + kHidden, y.end() - kHidden); }));
      CHECK(fails([](Rows& y) { std::fill_n(y.end() - 8, 8, 0.0); }));  // the last vector
      CHECK(fails([](Rows& y) { std::fill_n(y.end() - 8, 8, std::nan("")); }));
    }
}

TEST_CASE("rms_norm judge: a residual sum that is old, or lacks X, fails", "[rms_norm][controls]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Judged judged(dtype, true);
    const Judged without(dtype, false);
    const Rows right = judged.y({});
    Rows lacks_x = judged.sum();
    const Rows x = without.sum();
    std::transform(lacks_x.begin(), lacks_x.end(), x.begin(), lacks_x.begin(), std::minus<>());
    CHECK(judged.check(right, judged.sum()).passed);
    CHECK_FALSE(judged.check(right, lacks_x).passed);
    CHECK_FALSE(judged.check(right, x).passed);
    Rows last_row_old = judged.sum();
    std::copy(lacks_x.end() - kHidden, lacks_x.end(), last_row_old.end() - kHidden);
    CHECK_FALSE(judged.check(right, last_row_old).passed);
  }
}
