#include "harness/judge/scan.hpp"

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// More than two chunks of the scan, and no multiple of one.
constexpr std::int64_t kElements = 150'001;

TensorSpec output(Dtype dtype, std::int64_t elements) {
  return {.name = "y", .role = Role::output, .dtype = dtype, .shape = {elements}};
}

template <class Bits>
struct Patterns {
  Dtype dtype;
  Bits one, nan, infinity, minus_infinity;
};

template <class Bits>
void check_patterns(const Patterns<Bits>& patterns) {
  CAPTURE(dtype_name(patterns.dtype));
  std::vector<Bits> data(kElements, patterns.one);
  const TensorSpec spec = output(patterns.dtype, kElements);
  Scan scan = scan_output(spec, data.data(), 2);
  CHECK(scan.unwritten.count == 0);
  CHECK(scan.nan.count == 0);
  CHECK(scan.infinite.count == 0);

  const auto poison = static_cast<Bits>(-1);
  data[70'000] = patterns.nan;
  data[140'000] = patterns.infinity;
  data[140'001] = patterns.minus_infinity;
  data[kElements - 1] = poison;
  scan = scan_output(spec, data.data(), 2);
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
  const Scan scan = scan_output(output(Dtype::f16, std::ssize(halves)), halves.data(), 1);
  CHECK(scan.unwritten.count + scan.nan.count + scan.infinite.count == 0);
}

TEST_CASE("scan: integers have no NaN, and -1 is the poison", "[judge][scan]") {
  const std::vector<std::int32_t> integers = {0, 0x7f800001, -2, -1};
  const Scan scan = scan_output(output(Dtype::i32, std::ssize(integers)), integers.data(), 1);
  CHECK(scan.nan.count == 0);
  CHECK(scan.infinite.count == 0);
  CHECK(scan.unwritten.count == 1);
  CHECK(scan.unwritten.first == 3);
}

TEST_CASE("scan: an empty output has no findings", "[judge][scan]") {
  CHECK(scan_output(output(Dtype::f32, 0), nullptr, 2).unwritten.count == 0);
}

TEST_CASE("scan: bytes hold anything but their poison", "[judge][scan]") {
  for (const int poison : {0xff, 0x80, 0x88, 0x00}) {
    CAPTURE(poison);
    TensorSpec spec = output(Dtype::u8, kElements);
    spec.poison = static_cast<std::uint8_t>(poison);
    std::vector<std::uint8_t> data(kElements);
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<std::uint8_t>(i);
      if (data[i] == poison) data[i] ^= 1;
    }
    Scan scan = scan_output(spec, data.data(), 2);
    CHECK(scan.unwritten.count + scan.nan.count + scan.infinite.count + scan.overwritten.count == 0);
    data[70'000] = data[kElements - 1] = spec.poison;
    scan = scan_output(spec, data.data(), 2);
    CHECK(scan.unwritten.count == 2);
    CHECK(scan.unwritten.first == 70'000);
    CHECK(scan.nan.count + scan.infinite.count == 0);
  }
}

TEST_CASE("scan: unused elements must hold the poison, and only they may", "[judge][scan]") {
  TensorSpec spec = output(Dtype::f16, kElements);
  // A range across a chunk's end, an empty one, and the last two of every 50 elements in the first 1000.
  spec.unused = {{65'000, 66'000}, {5, 5}, {.begin = 48, .end = 50, .repeats = 20, .stride = 50}};
  std::vector<std::uint16_t> data(kElements, 0x3c00);
  std::int64_t unused = 0;
  for (const ElementRange& range : spec.unused)
    for_each_part(range, 0, kElements, [&](std::int64_t begin, std::int64_t end) {
      std::fill(data.begin() + begin, data.begin() + end, std::uint16_t{0xffff});
      unused += end - begin;
    });
  CHECK(unused == 1000 + 20 * 2);
  Scan scan = scan_output(spec, data.data(), 2);
  CHECK(scan.overwritten.count + scan.unwritten.count + scan.nan.count + scan.infinite.count == 0);

  data[65'999] = 0x3c00;
  data[149] = 0x7e00;  // another NaN than the poison
  data[150] = 0xffff;  // beside the padding
  data[66'000] = 0xffff;
  scan = scan_output(spec, data.data(), 2);
  CHECK(scan.overwritten.count == 2);
  CHECK(scan.overwritten.first == 149);
  CHECK(scan.unwritten.count == 2);
  CHECK(scan.unwritten.first == 150);
  CHECK(scan.nan.count == 0);
}
