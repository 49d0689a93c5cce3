// Host tensors: sizes, filling, and the judge's view of the same values.
#include "harness/operator/tensor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr std::uint64_t kSeed = 5;

TensorSpec normal_spec(Dtype dtype, std::vector<std::int64_t> shape) {
  return {.name = "x", .dtype = dtype, .shape = std::move(shape), .source = Normal{.stddev = 0.5}};
}

std::vector<std::byte> filled(const TensorSpec& spec, std::uint64_t tensor, int threads) {
  std::vector<std::byte> memory(static_cast<std::size_t>(spec.bytes()), std::byte{0x11});
  fill_host(spec, kSeed, tensor, memory.data(), threads);
  return memory;
}

bool same_values(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  return true;
}

}  // namespace

TEST_CASE("tensor: elements and bytes are products of the shape", "[tensor]") {
  CHECK(normal_spec(Dtype::f16, {2, 3, 5}).elements() == 30);
  CHECK(normal_spec(Dtype::f16, {2, 3, 5}).bytes() == 60);
  CHECK(normal_spec(Dtype::f32, {2, 3, 5}).bytes() == 120);
  CHECK(normal_spec(Dtype::f32, {}).elements() == 1);
  CHECK(normal_spec(Dtype::f32, {0, std::int64_t{1} << 40, std::int64_t{1} << 40}).bytes() == 0);
}

TEST_CASE("tensor: a size that passes 2^63 is refused with the tensor's name", "[tensor]") {
  const std::int64_t big = std::int64_t{1} << 31;
  CHECK(normal_spec(Dtype::f16, {big, big}).elements() == std::int64_t{1} << 62);
  CHECK_THROWS_AS(normal_spec(Dtype::f16, {big, big}).bytes(), ProblemError);
  CHECK_THROWS_WITH(normal_spec(Dtype::f16, {big, big, 2}).elements(),
                    "x must be a size below 2^63, got 2147483648 x 2147483648 x 2");
  CHECK_THROWS_AS(normal_spec(Dtype::f16, {-1, 2}).elements(), ProblemError);
}

TEST_CASE("tensor: host memory and the judge's view hold the generator's values, rounded", "[tensor]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    INFO(dtype_name(dtype));
    const TensorSpec spec = normal_spec(dtype, {7, 143});
    const Inputs inputs({spec, spec}, kSeed);
    const std::vector<float> second = inputs.read("x", 0, spec.elements());
    const auto memory = filled(spec, 0, 1);
    CHECK(same_values(to_floats(dtype, memory.data(), 0, spec.elements()), second));
    const std::uint64_t key = stream_key(kSeed, 0);
    const float scale = normal_scale(0.5);
    int wrong = 0;
    for (std::uint64_t i = 0; i < second.size(); ++i) {
      const float exact = normal_at(key, i, scale);
      wrong += std::abs(second[i] - exact) <= unit_roundoff(dtype) * std::abs(exact) ? 0 : 1;
      wrong += dtype == Dtype::f32 && second[i] != exact ? 1 : 0;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor: a fill is the same with any number of threads", "[tensor]") {
  const TensorSpec spec = normal_spec(Dtype::bf16, {100'003});
  const auto one = filled(spec, 2, 1);
  CHECK(filled(spec, 2, 2) == one);
  CHECK(filled(spec, 2, 7) == one);
  CHECK(filled(spec, 3, 2) != one);
}

TEST_CASE("tensor: any part can be read by itself", "[tensor]") {
  TensorSpec spec = normal_spec(Dtype::f16, {1000});
  spec.unused = {{100, 110}, {990, 1000}};
  const Inputs inputs({spec}, kSeed);
  const std::vector<float> whole = inputs.read("x", 0, 1000);
  for (const auto& [begin, count] : {std::pair{0, 1}, {95, 10}, {105, 20}, {100, 10}, {999, 1}, {1000, 0}})
    CHECK(same_values(inputs.read("x", begin, count), {whole.begin() + begin, whole.begin() + begin + count}));
  CHECK_THROWS_AS(inputs.read("x", 999, 2), std::out_of_range);
  CHECK_THROWS_AS(inputs.read("x", -1, 2), std::out_of_range);
  CHECK_THROWS_AS(inputs.read("x", 1, std::numeric_limits<std::int64_t>::max()), std::out_of_range);
  CHECK_THROWS_AS(inputs.read("y", 0, 1), std::out_of_range);
}

TEST_CASE("tensor: unused elements have all bits set, their neighbours do not", "[tensor]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    TensorSpec spec = normal_spec(dtype, {64});
    const auto before = to_floats(dtype, filled(spec, 0, 2).data(), 0, 64);
    spec.unused = {{0, 3}, {17, 18}, {20, 20}};
    const auto memory = filled(spec, 0, 2);
    const auto values = to_floats(dtype, memory.data(), 0, 64);
    CHECK(same_values(values, Inputs({spec}, kSeed).read("x", 0, 64)));
    const std::size_t size = dtype_bytes(dtype);
    for (std::size_t i = 0; i < 64; ++i) {
      const bool unused = i < 3 || i == 17;
      CHECK(std::isnan(values[i]) == unused);
      if (!unused) CHECK(values[i] == before[i]);
      if (unused)
        for (std::size_t byte = 0; byte < size; ++byte) CHECK(memory[i * size + byte] == std::byte{0xff});
    }
  }
}

TEST_CASE("tensor: a repeated range marks the same elements as its parts one by one", "[tensor]") {
  TensorSpec compact = normal_spec(Dtype::f16, {10, 100});
  compact.unused = {{.begin = 90, .end = 100, .repeats = 10, .stride = 100}, {3, 5}};
  TensorSpec listed = normal_spec(Dtype::f16, {10, 100});
  listed.unused = {{3, 5}};
  for (std::int64_t row = 0; row < 10; ++row) listed.unused.push_back({row * 100 + 90, row * 100 + 100});
  CHECK(filled(compact, 0, 2) == filled(listed, 0, 2));
  const Inputs a({compact}, kSeed);
  const Inputs b({listed}, kSeed);
  for (std::int64_t begin = 0; begin < 1000; begin += 7)
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{6}})
      CHECK(same_values(a.read("x", begin, count), b.read("x", begin, count)));
  CHECK(same_values(a.read("x", 0, 1000), b.read("x", 0, 1000)));
}

TEST_CASE("tensor: bytes are random or chosen, and any part can be read by itself", "[tensor]") {
  TensorSpec spec{.name = "codes", .dtype = Dtype::u8, .shape = {77, 13}, .source = RandomBytes{}};
  CHECK(spec.bytes() == 1001);
  spec.unused = {{100, 110}};
  const auto memory = filled(spec, 0, 2);
  CHECK(filled(spec, 0, 7) == memory);
  CHECK(filled(spec, 1, 1) != memory);
  const Inputs inputs({spec}, kSeed);
  const std::vector<float> whole = inputs.read("codes", 0, 1001);
  CHECK(to_floats(Dtype::u8, memory.data(), 0, 1001) == whole);
  CHECK(*std::min_element(whole.begin(), whole.end()) == 0);  // missing with probability (255/256)^991 = 2 %; not here
  for (std::int64_t i = 100; i < 110; ++i) CHECK(whole[static_cast<std::size_t>(i)] == 255);
  for (const auto& [begin, count] : {std::pair{0, 1}, {1, 7}, {3, 30}, {95, 20}, {1000, 1}, {1001, 0}})
    CHECK(inputs.read("codes", begin, count) ==
          std::vector<float>(whole.begin() + begin, whole.begin() + begin + count));

  spec.source = RandomBytes{.without_e4m3_nan = true};
  spec.unused.clear();
  const std::vector<float> numbers = Inputs({spec}, kSeed).read("codes", 0, 1001);
  CHECK(to_floats(Dtype::u8, filled(spec, 0, 2).data(), 0, 1001) == numbers);
  CHECK(std::count_if(numbers.begin(), numbers.end(), [](float x) { return x == 127 || x == 255; }) == 0);

  spec.source = [](std::int64_t i) { return static_cast<float>(i % 256); };
  CHECK(Inputs({spec}, kSeed).read("codes", 250, 8) == std::vector<float>{250, 251, 252, 253, 254, 255, 0, 1});
  CHECK(to_floats(Dtype::u8, filled(spec, 0, 2).data(), 250, 8) == Inputs({spec}, kSeed).read("codes", 250, 8));
}

TEST_CASE("tensor: a mean of four standard deviations makes positive values, read as they are filled", "[tensor]") {
  TensorSpec spec = normal_spec(Dtype::f16, {5000});
  spec.source = Normal{.stddev = 0.01, .mean = 0.04};
  const std::vector<float> values = Inputs({spec}, kSeed).read("x", 0, 5000);
  CHECK(same_values(to_floats(Dtype::f16, filled(spec, 0, 2).data(), 0, 5000), values));
  CHECK(*std::min_element(values.begin(), values.end()) > 0.005F);
  CHECK(*std::max_element(values.begin(), values.end()) < 0.075F);
}

TEST_CASE("tensor: an output of bytes is poisoned with the byte it chose", "[tensor]") {
  TensorSpec spec{.name = "codes", .role = Role::output, .dtype = Dtype::u8, .shape = {1000}, .poison = 0x88};
  const auto memory = filled(spec, 0, 2);
  CHECK(std::count(memory.begin(), memory.end(), std::byte{0x88}) == 1000);
}

TEST_CASE("tensor: outputs are poisoned to the last byte", "[tensor]") {
  TensorSpec spec = normal_spec(Dtype::f32, {(1 << 19) + 3});
  spec.role = Role::output;
  const auto memory = filled(spec, 0, 2);
  CHECK(std::count(memory.begin(), memory.end(), std::byte{0xff}) == static_cast<std::ptrdiff_t>(memory.size()));
  CHECK_THROWS_AS(Inputs({spec}, kSeed).read("x", 0, 1), std::invalid_argument);
}

TEST_CASE("tensor: functions and integers fill what they are made for", "[tensor]") {
  TensorSpec ramp{.name = "ramp", .dtype = Dtype::f16, .shape = {4}};
  ramp.source = [](std::int64_t i) { return static_cast<float>(i) / 3; };
  TensorSpec table{
      .name = "table", .dtype = Dtype::i32, .shape = {2, 2}, .source = std::vector<std::int32_t>{3, -1, 0, 7}};
  const Inputs inputs({ramp, table}, kSeed);

  const auto memory = filled(ramp, 0, 2);
  const std::vector<float> expected{0, f16_value(f16_bits(1.0F / 3)), f16_value(f16_bits(2.0F / 3)), 1};
  CHECK(to_floats(Dtype::f16, memory.data(), 0, 4) == expected);
  CHECK(inputs.read("ramp", 0, 4) == expected);

  const auto integers = filled(table, 1, 2);
  std::vector<std::int32_t> stored(4);
  std::memcpy(stored.data(), integers.data(), integers.size());
  CHECK(stored == std::vector<std::int32_t>{3, -1, 0, 7});
  CHECK(inputs.integers("table") == stored);
  CHECK(inputs.read("table", 1, 2) == std::vector<float>{-1, 0});
  CHECK_THROWS_AS(inputs.integers("ramp"), std::invalid_argument);
}

TEST_CASE("tensor: a source that does not fit its tensor is refused", "[tensor]") {
  const TensorSpec few{.name = "t", .dtype = Dtype::i32, .shape = {3}, .source = std::vector<std::int32_t>{1, 2}};
  CHECK_THROWS_WITH(Inputs({few}, kSeed), "tensor 't': has 3 elements, but 2 integers");
  CHECK_THROWS_AS(Inputs({normal_spec(Dtype::i32, {3})}, kSeed), std::invalid_argument);
  const TensorSpec wrong{.name = "t", .dtype = Dtype::f16, .shape = {2}, .source = std::vector<std::int32_t>{1, 2}};
  CHECK_THROWS_AS(Inputs({wrong}, kSeed), std::invalid_argument);
  TensorSpec outside = normal_spec(Dtype::f16, {10});
  outside.unused = {{5, 11}};
  CHECK_THROWS_WITH(Inputs({outside}, kSeed), "tensor 'x': unused range [5, 11) is not within 10 elements");
  outside.unused = {{.begin = 1, .end = 2, .repeats = 4, .stride = 3}};
  CHECK_THROWS_WITH(Inputs({outside}, kSeed),
                    "tensor 'x': unused range [1, 2), 4 times 3 apart, is not within 10 elements");
  outside.unused = {{.begin = 0, .end = 2, .repeats = 4, .stride = 1}};  // they overlap
  CHECK_THROWS_AS(Inputs({outside}, kSeed), std::invalid_argument);
  outside.unused = {{.begin = 0, .end = 1, .repeats = 4, .stride = 3}};
  CHECK_NOTHROW(Inputs({outside}, kSeed));
  CHECK_THROWS_WITH(Inputs({normal_spec(Dtype::u8, {3})}, kSeed),
                    "tensor 'x': random bytes or a function fill u8 tensors");
  const TensorSpec bytes{.name = "t", .dtype = Dtype::f16, .shape = {2}, .source = RandomBytes{}};
  CHECK_THROWS_WITH(Inputs({bytes}, kSeed), "tensor 't': random bytes fill u8 tensors only");
  TensorSpec far = normal_spec(Dtype::f16, {10});
  far.source = Normal{.stddev = 0.01, .mean = 4.01};  // 401 standard deviations
  CHECK_THROWS_AS(Inputs({far}, kSeed), std::invalid_argument);
  far.source = Normal{.stddev = 0, .mean = 1};
  CHECK_THROWS_AS(Inputs({far}, kSeed), std::invalid_argument);
  const TensorSpec poison{.name = "t", .role = Role::output, .dtype = Dtype::f16, .shape = {2}, .poison = 0x80};
  CHECK_THROWS_WITH(Inputs({poison}, kSeed), "tensor 't': only u8 tensors choose their poison");
}

TEST_CASE("tensor: computed elements come from the seed, in rows, the same for memory and judge", "[tensor]") {
  // Element i is seed + i; a row of 7 of 40 elements, so that the last one is short.
  std::vector<std::int64_t> begins;
  TensorSpec spec{.name = "x", .dtype = Dtype::u8, .shape = {40}};
  spec.source = Computed{.fill =
                             [&begins](std::uint64_t seed, std::int64_t begin, std::int64_t count, void* elements) {
                               begins.push_back(begin);
                               for (std::int64_t i = 0; i < count; ++i)
                                 static_cast<std::uint8_t*>(elements)[i] =
                                     static_cast<std::uint8_t>(seed + static_cast<std::uint64_t>(begin + i));
                             },
                         .row_elements = 7};
  spec.unused = {{.begin = 3, .end = 5}};
  const std::vector<std::byte> memory = filled(spec, 2, 1);
  CHECK(begins == std::vector<std::int64_t>{0, 7, 14, 21, 28, 35});
  for (std::size_t i = 0; i < memory.size(); ++i)
    CHECK(std::to_integer<std::uint64_t>(memory[i]) == (i == 3 || i == 4 ? 255 : kSeed + i));
  CHECK(same_values(Inputs({spec}, kSeed).read("x", 2, 30), to_floats(Dtype::u8, memory.data(), 2, 30)));
  spec.source = Computed{.fill = {}, .row_elements = 0};
  CHECK_THROWS_WITH(check_spec(spec), "tensor 'x': a row must have at least one element, got 0");
}
