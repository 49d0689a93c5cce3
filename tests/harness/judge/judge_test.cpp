#include "harness/judge/judge.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One f32 output "y" of 8 rows of 16 elements, of which all rows are expected unless a test takes some away.
struct Fixture {
  TensorSpec spec{.name = "y", .role = Role::output, .dtype = Dtype::f32, .shape = {2, 4, 16}};
  std::vector<float> data;
  std::vector<ExpectedSpan> expected;
  Tolerance tolerance{.rel_l2 = 1e-3, .max_error_over_rms = 1e-2};

  Fixture() {
    for (int i = 0; i < 128; ++i) data.push_back(std::sin(static_cast<float>(i) + 1.0F));
    for (std::int64_t row = 0; row < 8; ++row)
      expected.push_back({"y", row * 16, std::vector<double>(data.begin() + row * 16, data.begin() + (row + 1) * 16)});
  }

  Check judged() const {
    const OutputView view{.spec = &spec, .data = data.data()};
    return judge(
        {&view, 1}, expected, [this](std::string_view) { return tolerance; }, "the test", 2);
  }
};

bool mentions(const Check& check, const std::string& text) { return check.reason.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("judge: equal outputs pass with zero error", "[judge]") {
  const Fixture fixture;
  const Check check = fixture.judged();
  CHECK(check.passed);
  CHECK(check.reason.empty());
  CHECK(check.rel_l2_error == 0);
  CHECK(check.max_abs_error == 0);
  CHECK(check.outputs_checked == 128);
  CHECK(check.outputs_total == 128);
  CHECK(check.reference == "the test");
  CHECK(check.tolerance_rel_l2 == 1e-3);
  CHECK(check.worst_tensor == "y");
}

TEST_CASE("judge: an element nobody wrote fails, inside the sample or not", "[judge]") {
  Fixture fixture;
  fixture.expected.erase(fixture.expected.begin() + 4, fixture.expected.end());
  for (const std::size_t element : {std::size_t{3}, std::size_t{127}}) {
    Fixture one = fixture;
    one.data[element] = std::bit_cast<float>(0xffffffffU);
    const Check check = one.judged();
    CHECK_FALSE(check.passed);
    CHECK(mentions(check,
                   element == 3
                       ? "y[0, 0, 3] was never written, or is a NaN with the poison's bits (1 such elements of 128)"
                       : "y[1, 3, 15] was never written"));
  }
}

TEST_CASE("judge: an element that is no part of the answer must keep the poison", "[judge]") {
  Fixture fixture;
  fixture.expected.pop_back();
  fixture.spec.unused = {{120, 128}};
  for (std::size_t i = 120; i < 128; ++i) fixture.data[i] = std::bit_cast<float>(0xffffffffU);
  CHECK(fixture.judged().passed);
  fixture.data[124] = 0;
  const Check check = fixture.judged();
  CHECK_FALSE(check.passed);
  CHECK(mentions(check, "y[1, 3, 12] was written, but is no part of the answer (1 such elements of 128)"));
}

TEST_CASE("judge: bytes are compared as the numbers 0 to 255", "[judge]") {
  const TensorSpec spec{.name = "y", .role = Role::output, .dtype = Dtype::u8, .shape = {4}, .poison = 0x80};
  const std::vector<std::uint8_t> data{0, 127, 129, 255};
  const OutputView view{.spec = &spec, .data = data.data()};
  const auto passes = [&](const std::vector<double>& expected) {
    const ExpectedSpan span{.tensor = "y", .begin = 0, .values = expected};
    return judge(
               {&view, 1}, {&span, 1}, [](std::string_view) { return Tolerance{}; }, "the test", 1)
        .passed;
  };
  CHECK(passes({0, 127, 129, 255}));
  CHECK_FALSE(passes({0, 127, 129, 254}));
  CHECK_FALSE(passes({0, 127, -127, 255}));
}

TEST_CASE("judge: a NaN fails, inside the sample or not", "[judge]") {
  Fixture fixture;
  fixture.expected.resize(4);
  for (const std::size_t element : {std::size_t{17}, std::size_t{100}}) {
    Fixture one = fixture;
    one.data[element] = kNan;
    const Check check = one.judged();
    CHECK_FALSE(check.passed);
    CHECK(mentions(check, "is nan"));
  }
}

TEST_CASE("judge: an infinity fails where all expected values are finite, inside the sample or not", "[judge]") {
  Fixture fixture;
  fixture.expected.resize(4);
  for (const std::size_t element : {std::size_t{17}, std::size_t{100}}) {
    Fixture one = fixture;
    one.data[element] = kInfinity;
    const Check check = one.judged();
    CHECK_FALSE(check.passed);
    CHECK(mentions(check, "inf"));
  }
}

TEST_CASE("judge: infinities must match in place and in sign", "[judge]") {
  Fixture fixture;
  fixture.expected[1].values[2] = -kInfinity;
  CHECK_FALSE(fixture.judged().passed);  // finite where -inf is expected
  CHECK(mentions(fixture.judged(), "y[0, 1, 2] is 0.149877"));
  CHECK(mentions(fixture.judged(), "expected -inf"));
  fixture.data[18] = kInfinity;
  CHECK_FALSE(fixture.judged().passed);
  fixture.data[18] = -kInfinity;
  CHECK(fixture.judged().passed);
  fixture.data[19] = -kInfinity;  // where a finite value is expected
  CHECK_FALSE(fixture.judged().passed);
}

TEST_CASE("judge: a relative error at the tolerance passes, above it fails with both numbers", "[judge]") {
  Fixture fixture;
  for (float& value : fixture.data) value *= 1.0F + 0.9e-3F;
  CHECK(fixture.judged().passed);
  CHECK(fixture.judged().rel_l2_error == Approx(0.9e-3).epsilon(1e-3));
  for (float& value : fixture.data) value *= 1.0F + 0.2e-3F;
  const Check check = fixture.judged();
  CHECK_FALSE(check.passed);
  CHECK(check.rel_l2_error == Approx(1.1e-3).epsilon(1e-3));
  CHECK(mentions(check, "relative L2 error 0.0011 over 128 elements, at most 0.001 allowed"));
}

TEST_CASE("judge: one wrong element in a large tensor fails by itself and is named", "[judge]") {
  Fixture fixture;
  fixture.tolerance.rel_l2 = 1;
  fixture.data[77] += 0.05F;
  const Check check = fixture.judged();
  CHECK_FALSE(check.passed);
  CHECK(check.worst_index == std::vector<std::int64_t>{1, 0, 13});
  CHECK(check.max_abs_error == Approx(0.05).epsilon(1e-4));
  CHECK(mentions(check, "y[1, 0, 13] is "));
  CHECK(mentions(check, "root mean squares, at most 0.01 allowed"));
}

TEST_CASE("judge: a wrong row of small values does not hide behind large rows", "[judge]") {
  Fixture fixture;
  for (std::size_t i = 0; i < 16; ++i) {
    fixture.expected[0].values[i] *= 1000;
    fixture.data[i] *= 1000;
    fixture.data[112 + i] = 0;  // all of row 7
  }
  fixture.tolerance.max_error_over_rms = 1;
  CHECK(fixture.judged().passed);  // 1 / 1000 of the tensor
  fixture.tolerance.row_rel_l2 = 2e-3;
  const Check check = fixture.judged();
  CHECK_FALSE(check.passed);
  CHECK(mentions(check, "in the row from y[1, 3, 0] on"));
}

TEST_CASE("judge: an element's error is set against its own row where that is larger than the tensor", "[judge]") {
  Fixture fixture;
  for (std::size_t i = 0; i < 16; ++i) {
    fixture.expected[0].values[i] *= 1000;
    fixture.data[i] *= 1000;
  }
  fixture.data[3] += 5.0F;  // row 0: 0.7 %; the tensor's magnitude is 0.35 of the row's, where it would be 2 %
  fixture.tolerance.rel_l2 = 1;
  CHECK(fixture.judged().passed);
  fixture.data[3] += 5.0F;
  CHECK_FALSE(fixture.judged().passed);
}

TEST_CASE("judge: near zero, the floor makes the error absolute", "[judge]") {
  Fixture fixture;
  for (std::size_t i = 0; i < fixture.data.size(); ++i) {
    fixture.data[i] *= 1e-6F;
    for (ExpectedSpan& span : fixture.expected) span.values[i % 16] = 0;
  }
  CHECK_FALSE(fixture.judged().passed);
  fixture.tolerance.rms_floor = 1;
  CHECK(fixture.judged().passed);
  CHECK(fixture.judged().rel_l2_error < 1e-6);
}

TEST_CASE("judge: where zeros are expected only zeros pass", "[judge]") {
  Fixture fixture;
  for (ExpectedSpan& span : fixture.expected) span.values.assign(16, 0);
  fixture.data.assign(128, 0.0F);
  CHECK(fixture.judged().passed);
  fixture.data[5] = 1e-30F;
  CHECK_FALSE(fixture.judged().passed);
}

TEST_CASE("judge: the report is about the tensor furthest beyond its tolerance", "[judge]") {
  const Fixture fixture;
  TensorSpec other = fixture.spec;
  other.name = "z";
  std::vector<float> wrong = fixture.data;
  wrong[40] += 10.0F;
  std::vector<ExpectedSpan> expected = fixture.expected;
  for (ExpectedSpan span : fixture.expected) {
    span.tensor = "z";
    expected.push_back(span);
  }
  const OutputView views[] = {{&fixture.spec, fixture.data.data()}, {&other, wrong.data()}};
  const Check check = judge(
      views, expected, [&](std::string_view) { return fixture.tolerance; }, "the test", 0);
  CHECK_FALSE(check.passed);
  CHECK(check.worst_tensor == "z");
  CHECK(check.worst_index == std::vector<std::int64_t>{0, 2, 8});
  CHECK(check.outputs_total == 256);
  CHECK(check.outputs_checked == 256);
}

TEST_CASE("judge: an operator whose expected values fit no output is an error, not a verdict", "[judge]") {
  Fixture fixture;
  fixture.expected[0].tensor = "x";
  CHECK_THROWS_AS(fixture.judged(), std::logic_error);
  fixture.expected[0] = {"y", 120, std::vector<double>(16)};
  CHECK_THROWS_AS(fixture.judged(), std::logic_error);
  fixture.expected.clear();
  CHECK_THROWS_AS(fixture.judged(), std::logic_error);
}
