#include "harness/judge/scan.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// More than two chunks of the scan, and no multiple of one.
constexpr std::int64_t kElements = 150'001;

template <class Bits>
struct Patterns {
  Dtype dtype;
  Bits one, nan, infinity, minus_infinity;
};

template <class Bits>
void check_patterns(const Patterns<Bits>& patterns) {
  CAPTURE(dtype_name(patterns.dtype));
  std::vector<Bits> data(kElements, patterns.one);
  Scan scan = scan_output(patterns.dtype, data.data(), kElements, 2);
  CHECK(scan.unwritten.count == 0);
  CHECK(scan.nan.count == 0);
  CHECK(scan.infinite.count == 0);

  const auto poison = static_cast<Bits>(-1);
  data[70'000] = patterns.nan;
  data[140'000] = patterns.infinity;
  data[140'001] = patterns.minus_infinity;
  data[kElements - 1] = poison;
  scan = scan_output(patterns.dtype, data.data(), kElements, 2);
  CHECK(scan.nan.count == 1);
  CHECK(scan.nan.first == 70'000);
  CHECK(scan.infinite.count == 2);
  CHECK(scan.infinite.first == 140'000);
  CHECK(scan.unwritten.count == 1);
  CHECK(scan.unwritten.first == kElements - 1);
}

}  // namespace

TEST_CASE("scan: NaN, infinities and the poison are found and told apart in every float type", "[judge][scan]") {
  check_patterns<std::uint16_t>({Dtype::f16, 0x3c00, 0x7e00, 0x7c00, 0xfc00});
  check_patterns<std::uint16_t>({Dtype::bf16, 0x3f80, 0x7fc0, 0x7f80, 0xff80});
  check_patterns<std::uint32_t>({Dtype::f32, 0x3f800000, 0x7fc00000, 0x7f800000, 0xff800000});
}

TEST_CASE("scan: the largest finite values, zero and subnormals are no findings", "[judge][scan]") {
  const std::vector<std::uint16_t> halves = {0x7bff, 0xfbff, 0x0000, 0x8000, 0x0001, 0x83ff};
  const Scan scan = scan_output(Dtype::f16, halves.data(), std::ssize(halves), 1);
  CHECK(scan.unwritten.count + scan.nan.count + scan.infinite.count == 0);
}

TEST_CASE("scan: integers have no NaN, and -1 is the poison", "[judge][scan]") {
  const std::vector<std::int32_t> integers = {0, 0x7f800001, -2, -1};
  const Scan scan = scan_output(Dtype::i32, integers.data(), std::ssize(integers), 1);
  CHECK(scan.nan.count == 0);
  CHECK(scan.infinite.count == 0);
  CHECK(scan.unwritten.count == 1);
  CHECK(scan.unwritten.first == 3);
}

TEST_CASE("scan: an empty output has no findings", "[judge][scan]") {
  CHECK(scan_output(Dtype::f32, nullptr, 0, 2).unwritten.count == 0);
}
