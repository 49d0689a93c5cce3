// The test support itself: what run_variant and its guards must notice.
#include "tests/support/run_variant.hpp"

#include <algorithm>
#include <cmath>

#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/guarded_memory.hpp"

using namespace inferometer;
using test::GuardedMemory;
using test::run_variant;

TEST_CASE("guarded memory: a write one byte past either end is found and named", "[support]") {
  const auto device = make_cpu_device(1);
  for (const std::size_t bytes : {2U, 256U, 1000U}) {
    CAPTURE(bytes);
    GuardedMemory memory(*device);
    const auto owner = memory.allocate(bytes, "y");
    auto* data = static_cast<std::byte*>(owner.get());
    CHECK(reinterpret_cast<std::uintptr_t>(data) % 256 == 0);
    std::fill(data, data + bytes, std::byte{1});
    CHECK(memory.violations().empty());
    data[bytes] = std::byte{1};
    CHECK(memory.violations() == std::vector<std::string>{"1 bytes were written behind y"});
    data[-1] = std::byte{1};
    CHECK(memory.violations().size() == 2);
    CHECK(memory.violations()[0] == "1 bytes were written in front of y");
  }
}

TEST_CASE("guarded memory: what is read past an end is NaN in every float type", "[support]") {
  const auto device = make_cpu_device(1);
  GuardedMemory memory(*device);
  const auto owner = memory.allocate(256, "x");
  const std::byte* data = static_cast<const std::byte*>(owner.get());
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    CHECK(std::isnan(to_floats(dtype, data + 256, 0, 1)[0]));
    CHECK(std::isnan(to_floats(dtype, data - 4, 0, 1)[0]));
  }
}

TEST_CASE("guarded memory: freed allocations are looked at no more", "[support]") {
  const auto device = make_cpu_device(1);
  GuardedMemory memory(*device);
  memory.allocate(64, "gone").reset();
  CHECK(memory.violations().empty());
}

TEST_CASE("run_variant: a right variant passes, one that does nothing or writes zeros does not", "[support]") {
  const Fields problem = {{"n", std::int64_t{1000}}};
  CHECK(run_variant("test_copy", "cpu.right", problem).check.passed);
  CHECK_FALSE(run_variant("test_copy", "cpu.zeros", problem).check.passed);
  const auto nothing = run_variant("test_copy", "cpu.nothing", problem);
  CHECK_FALSE(nothing.check.passed);
  CHECK(nothing.check.reason ==
        "y[0] was never written, or is a NaN with the poison's bits (1000 such elements of 1000)");
}

TEST_CASE("run_variant: chosen inputs reach the variant, and outputs come back by name", "[support]") {
  const auto run =
      run_variant("test_copy", "cpu.right", {{"n", std::int64_t{5}}}, 1, [](std::vector<TensorSpec>& specs) {
        specs[0].source = [](std::int64_t i) { return static_cast<float>(i) + 0.5F; };
      });
  CHECK(run.unsupported.empty());
  CHECK(run.check.passed);
  CHECK(run.outputs.at("y") == std::vector<float>{0.5F, 1.5F, 2.5F, 3.5F, 4.5F});
  CHECK(run.raw.at("y").size() == 5 * sizeof(float));
}

TEST_CASE("run_variant: the seed decides the inputs", "[support]") {
  const Fields problem = {{"n", std::int64_t{64}}};
  const auto outputs = [&](std::uint64_t seed) { return run_variant("test_copy", "cpu.right", problem, seed).outputs; };
  CHECK(outputs(1) == outputs(1));
  CHECK(outputs(1) != outputs(2));
}

TEST_CASE("run_variant: unknown operators and variants are errors that name what there is", "[support]") {
  CHECK_THROWS_AS(run_variant("no_such", "cpu.right", {}), std::invalid_argument);
  CHECK_THROWS_WITH(run_variant("test_copy", "cpu.no_such", {{"n", std::int64_t{5}}}),
                    test::contains_text("cpu.right"));
}
