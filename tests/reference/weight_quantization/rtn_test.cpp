// Rounding to nearest: groups that broke other people's quantisers, and its error on random ones.
#include "reference/weight_quantization/rtn.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/operator/generate.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

std::vector<GridFormat> formats() {
  std::vector<GridFormat> all;
  for (const std::int64_t bits : {8, 4, 3})
    for (const bool symmetric : {true, false})
      for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
        all.push_back({.bits = bits, .symmetric = symmetric, .scale_dtype = dtype});
  return all;
}

std::string text_of(const GridFormat& f) {
  return std::to_string(f.bits) + " bits, " + (f.symmetric ? "symmetric, " : "asymmetric, ") +
         std::string(dtype_name(f.scale_dtype));
}

// A group and what it is worth after rounding.
struct Rounded {
  Grid grid;
  std::vector<std::int32_t> codes;
  std::vector<float> worth;

  Rounded(const GridFormat& format, const std::vector<float>& group) : codes(group.size()), worth(group.size()) {
    std::vector<Grid> grids(1);
    quantize_rtn(format, group, static_cast<std::int64_t>(group.size()), codes, grids);
    grid = grids[0];
    for (std::size_t i = 0; i < group.size(); ++i) worth[i] = weight_of(grid, codes[i]);
  }

  void check_codes(const GridFormat& format) const {
    for (const std::int32_t code : codes) {
      CHECK(code >= format.least_code());
      CHECK(code <= format.largest_code());
    }
    CHECK(grid.zero >= (format.symmetric ? 0 : format.least_code()));
    CHECK(grid.zero <= (format.symmetric ? 0 : format.largest_code()));
  }
};

std::vector<float> random_group(std::uint64_t seed, std::size_t size, double mean) {
  std::vector<float> group(size);
  for (std::size_t i = 0; i < size; ++i)
    group[i] = normal_at(stream_key(seed, 0), i, normal_scale(0.1)) + static_cast<float>(mean);
  return group;
}

}  // namespace

TEST_CASE("rtn: a group of zeros has a finite scale and stays exactly zero", "[weight_quantization]") {
  for (const GridFormat& format : formats()) {
    CAPTURE(text_of(format));
    const Rounded rounded(format, std::vector<float>(32, 0.0F));
    CHECK(std::isfinite(rounded.grid.scale));
    for (const float worth : rounded.worth) CHECK(worth == 0.0F);
  }
}

TEST_CASE("rtn: a constant group stays within half a step", "[weight_quantization]") {
  for (const GridFormat& format : formats()) {
    for (const float value : {0.5F, -0.5F, 1e-3F, -3.0F}) {
      CAPTURE(text_of(format), value);
      const Rounded rounded(format, std::vector<float>(32, value));
      rounded.check_codes(format);
      for (const float worth : rounded.worth) CHECK(std::abs(worth - value) <= rounded.grid.scale / 2);
    }
  }
}

TEST_CASE("rtn: values in [0.4, 0.6] have 0 in their range and err by at most 0.02", "[weight_quantization]") {
  std::vector<float> group(128);
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = 0.4F + 0.2F * static_cast<float>(i) / 127;
  const GridFormat format{.bits = 4, .symmetric = false};
  const Rounded rounded(format, group);
  CHECK(rounded.grid.zero == 0);
  // Half of a step of 0.6 / 15, which rounding the scale to f16 may lengthen by 2^-11 of itself.
  for (std::size_t i = 0; i < group.size(); ++i) CHECK(std::abs(rounded.worth[i] - group[i]) <= 0.02 * (1 + 0x1p-11));
  for (const GridFormat& any : formats()) {
    const Grid grid = rtn_grid(any, group);
    CHECK(weight_of(grid, nearest_code(any, grid, 0.0F)) == 0.0F);
  }
}

TEST_CASE("rtn: a random group errs by at most half a step, but where a rounded scale cuts its end off",
          "[weight_quantization]") {
  for (const GridFormat& format : formats()) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      for (const double mean : {0.0, 0.3, -0.3}) {
        CAPTURE(text_of(format), seed, mean);
        const std::vector<float> group = random_group(seed, 64, mean);
        const Rounded rounded(format, group);
        rounded.check_codes(format);
        // A scale rounded down by u leaves largest_code * u of a step beyond the end of the grid. In an asymmetric one
        // the zero point is rounded too: half a step at one end or the other.
        const double cut = format.largest_code() * unit_roundoff(format.scale_dtype) + (format.symmetric ? 0.0 : 0.5);
        for (std::size_t i = 0; i < group.size(); ++i) {
          const bool inside = rounded.codes[i] > format.least_code() && rounded.codes[i] < format.largest_code();
          // The quotient is rounded in f32 before it is rounded to an integer.
          const double steps = (inside ? 0.5 : 0.5 + cut) + 256 * 0x1p-24;
          CHECK(std::abs(static_cast<double>(rounded.worth[i]) - group[i]) <= steps * rounded.grid.scale);
        }
      }
    }
  }
}

TEST_CASE("rtn: codes belong to the scale as it is stored, not to the one before rounding", "[weight_quantization]") {
  // 0.37 / 7 is no f16: weights at multiples of the stored scale must get exactly their code.
  const GridFormat format{.bits = 4, .symmetric = true};
  const std::vector<float> ends = {0.37F, -0.1F};
  const Grid grid = rtn_grid(format, ends);
  CHECK(grid.scale == f16_value(grid.scale_bits));
  CHECK(grid.scale != 0.37F / 7);
  for (std::int32_t code = -8; code <= 7; ++code)
    CHECK(nearest_code(format, grid, static_cast<float>(code) * grid.scale) == code);
}

TEST_CASE("rtn: scales that underflow or overflow give neither NaN nor infinity", "[weight_quantization]") {
  for (const GridFormat& format : formats()) {
    for (const float greatest : {0x1p-24F, 0x1p-25F, 0x1p-26F, 0x1p-130F, 0x1p-149F, 1e9F, 3e38F}) {
      for (const float sign : {1.0F, -1.0F}) {
        CAPTURE(text_of(format), greatest, sign);
        const std::vector<float> group = {sign * greatest, 0.0F, -sign * greatest / 2};
        const Rounded rounded(format, group);
        rounded.check_codes(format);
        CHECK(std::isfinite(rounded.grid.scale));
        for (std::size_t i = 0; i < group.size(); ++i) {
          CHECK(std::isfinite(rounded.worth[i]));
          CHECK(std::abs(rounded.worth[i]) <= 2 * greatest);
        }
        CHECK(rounded.worth[1] == 0.0F);
      }
    }
  }
  const GridFormat f16{.bits = 4, .symmetric = true, .scale_dtype = Dtype::f16};
  CHECK(Rounded(f16, {0x1p-25F}).worth[0] == 0.0F);  // scale below half of the least f16
  CHECK(rtn_grid(f16, std::vector<float>{1e9F}).scale == 65504.0F);
}

TEST_CASE("rtn: the symmetric grid reaches its far end exactly on either side", "[weight_quantization]") {
  const GridFormat format{.bits = 4, .symmetric = true};
  CHECK(Rounded(format, {-4.0F, 1.0F}).codes == std::vector<std::int32_t>{-8, 2});  // scale 4 / 8
  CHECK(Rounded(format, {7.0F, -1.0F}).codes == std::vector<std::int32_t>{7, -1});  // scale 7 / 7
}

TEST_CASE("rtn: a short last group has a grid of its own, and sizes that do not fit are refused",
          "[weight_quantization]") {
  const GridFormat format{.bits = 4, .symmetric = true};
  std::vector<float> row(40, 1.0F);
  std::fill(row.begin() + 32, row.end(), 7.0F);
  std::vector<std::int32_t> codes(40);
  std::vector<Grid> grids(2);
  quantize_rtn(format, row, 32, codes, grids);
  CHECK(grids[1].scale == 1.0F);
  CHECK(std::all_of(codes.begin(), codes.end(), [](std::int32_t code) { return code == 7; }));
  std::vector<Grid> one(1);
  CHECK_THROWS_AS(quantize_rtn(format, row, 32, codes, one), std::invalid_argument);
  CHECK_THROWS_AS(quantize_rtn(format, row, 0, codes, one), std::invalid_argument);
}

TEST_CASE("rtn: what the nearest codes are worth in one pass is what each is worth", "[weight_quantization]") {
  for (const GridFormat& format : formats()) {
    for (const double mean : {0.0, 0.3, -0.3}) {
      CAPTURE(text_of(format), mean);
      const std::vector<float> group = random_group(3, 77, mean);
      const std::vector<float> other = random_group(4, 20, mean);
      for (const Grid& grid : {rtn_grid(format, group), rtn_grid(format, other), rtn_grid(format, {})}) {
        std::vector<float> worth(group.size());
        nearest_worth(format, grid, group, worth);
        for (std::size_t i = 0; i < group.size(); ++i)
          CHECK(worth[i] == weight_of(grid, nearest_code(format, grid, group[i])));
      }
    }
  }
}
