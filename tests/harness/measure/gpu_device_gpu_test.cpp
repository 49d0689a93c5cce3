// The GPU as a device: memory, filling, copying, failing.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/measure/memory_ledger.hpp"
#include "harness/operator/cuda_check.cuh"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

std::unique_ptr<Device> open_gpu() {
  std::string reason;
  auto device = make_gpu_device(0, reason);
  INFO(reason);
  REQUIRE(device != nullptr);
  return device;
}

// As the GPU holds it, and as the host computes it.
std::array<std::vector<std::byte>, 2> filled_twice(Device& device, const TensorSpec& spec) {
  const auto bytes = static_cast<std::size_t>(spec.bytes());
  std::array<std::vector<std::byte>, 2> filled{std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
  void* const memory = device.allocate(bytes);
  device.set_zero(memory, bytes);
  device.fill(spec, /*seed=*/7, /*tensor=*/3, memory);
  device.copy_to_host(filled[0].data(), memory, bytes);
  device.release(memory);
  fill_host(spec, 7, 3, filled[1].data(), 1);
  return filled;
}

}  // namespace

TEST_CASE("gpu device: filled memory equals the host's bit for bit, unused elements included", "[measure][gpu]") {
  const auto device = open_gpu();
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    // 3e-6 puts f16 values among the subnormals; an odd count leaves a part of every vector and block over.
    for (const double stddev : {1.0, 0.02, 3e-6}) {
      CAPTURE(dtype_name(dtype), stddev);
      TensorSpec spec{.name = "x", .dtype = dtype, .shape = {1001, 997}, .source = Normal{stddev}};
      spec.unused = {{0, 1}, {500, 501}, {10'001, 20'000}, {998'000 - 3, 998'000 - 3}, {997'000, 997'997}};
      const auto [gpu, host] = filled_twice(*device, spec);
      CHECK(gpu == host);
    }
  }
}

TEST_CASE("gpu device: a mean, random bytes and repeated unused ranges give the host's bits", "[measure][gpu]") {
  const auto device = open_gpu();
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    CAPTURE(dtype_name(dtype));
    TensorSpec spec{.name = "x", .dtype = dtype, .shape = {1001, 997}, .source = Normal{.stddev = 0.01, .mean = 0.04}};
    spec.unused = {{.begin = 990, .end = 997, .repeats = 1001, .stride = 997}, {5, 5}};
    const auto [gpu, host] = filled_twice(*device, spec);
    CHECK(gpu == host);
  }
  for (const bool without_nan : {false, true}) {
    for (const std::int64_t columns : {1, 7, 8, 48, 4099}) {
      CAPTURE(without_nan, columns);
      TensorSpec spec{.name = "codes",
                      .dtype = Dtype::u8,
                      .shape = {100'003, columns},
                      .source = RandomBytes{.without_e4m3_nan = without_nan}};
      spec.unused = {{.begin = columns - 1, .end = columns, .repeats = 100'003, .stride = columns}};
      if (columns > 8) spec.unused.push_back({.begin = 3, .end = 6, .repeats = 50'000, .stride = 2 * columns});
      const auto [gpu, host] = filled_twice(*device, spec);
      CHECK(gpu == host);
    }
  }
  const TensorSpec output{.name = "codes", .role = Role::output, .dtype = Dtype::u8, .shape = {1003}, .poison = 0x88};
  const auto [gpu, host] = filled_twice(*device, output);
  CHECK(gpu == host);
  CHECK(gpu[1002] == std::byte{0x88});
}

TEST_CASE("gpu device: given integers, functions and outputs are filled as on the host", "[measure][gpu]") {
  const auto device = open_gpu();
  const TensorSpec table{.name = "block_table",
                         .dtype = Dtype::i32,
                         .shape = {2, 3},
                         .source = std::vector<std::int32_t>{5, -1, 2, 7, 0, 1 << 30}};
  const auto [gpu_table, host_table] = filled_twice(*device, table);
  CHECK(gpu_table == host_table);
  TensorSpec chosen{.name = "x", .dtype = Dtype::f16, .shape = {1000}};
  chosen.source = [](std::int64_t i) { return static_cast<float>(i) / 3; };
  chosen.unused = {{7, 9}};
  const auto [gpu_chosen, host_chosen] = filled_twice(*device, chosen);
  CHECK(gpu_chosen == host_chosen);
  const TensorSpec output{.name = "o", .role = Role::output, .dtype = Dtype::f32, .shape = {33}};
  const auto [gpu_output, host_output] = filled_twice(*device, output);
  CHECK(gpu_output == host_output);
  CHECK(gpu_output[0] == std::byte{0xff});
}

TEST_CASE("gpu device: asking for more than is free names both figures, and the device goes on", "[measure][gpu]") {
  const auto device = open_gpu();
  const std::size_t free = device->free_bytes();
  const std::size_t too_much = 2 * device->gpu()->memory_bytes;
  MemoryLedger ledger(*device, 4 * too_much);
  try {
    ledger.allocate(too_much, "inputs");
    FAIL("twice the memory of the GPU was given");
  } catch (const OutOfMemory& error) {
    CHECK(error.asked_bytes() == too_much);
    CHECK(error.free_bytes() > 0);
    CHECK(error.free_bytes() <= device->gpu()->memory_bytes);
    CHECK(std::string(error.what()).find(std::to_string(too_much)) != std::string::npos);
  }
  CHECK(ledger.held_bytes() == 0);
  const auto memory = ledger.allocate(1 << 20, "inputs");
  device->set_bytes(memory.get(), 0xff, 1 << 20);
  std::uint32_t read = 0;
  device->copy_to_host(&read, memory.get(), sizeof read);
  CHECK(read == 0xffffffffU);
  device->synchronize();
  CHECK(free <= device->gpu()->memory_bytes);
}

TEST_CASE("gpu device: says what it is", "[measure][gpu]") {
  const auto device = open_gpu();
  const auto info = device->gpu();
  REQUIRE(info);
  CHECK_FALSE(info->name.empty());
  CHECK(info->sm >= 80);
  CHECK(info->sm_count > 0);
  CHECK(info->memory_bytes > device->free_bytes());
  CHECK(device->cache_bytes() == info->l2_bytes);
  CHECK(info->l2_bytes > 0);
  CHECK(info->max_sm_mhz > 0);
  CHECK(info->uuid.size() == std::string("GPU-01234567-89ab-cdef-0123-456789abcdef").size());
  CHECK(device->launch().stream != nullptr);
  std::string reason;
  CHECK(make_gpu_device(1000, reason) == nullptr);
  CHECK(reason.find("no GPU 1000") == 0);
}

// Run by the next test in a process of its own, since a lost context stays lost.
TEST_CASE("child: a read through an illegal address surfaces as CudaError", "[.][illegal_address]") {
  const auto device = open_gpu();
  void* const sink = device->allocate(4);
  const void* const nowhere = static_cast<const std::byte*>(sink) + (std::size_t{1} << 44);  // 16 TiB on
  launch_read(nowhere, std::size_t{1} << 20, static_cast<std::uint32_t*>(sink), nullptr, device->launch().stream);
  try {
    device->synchronize();
    FAIL("the read went through");
  } catch (const CudaError& error) {
    CHECK(error.code() == cudaErrorIllegalAddress);
    CHECK(std::string(error.what()).find("cudaErrorIllegalAddress") != std::string::npos);
  }
  CHECK_THROWS_AS(device->synchronize(), CudaError);  // and again: the context is lost
}

TEST_CASE("gpu device: an illegal address surfaces as CudaError when the device is waited for", "[measure][gpu]") {
  std::array<char, 4096> self{};
  REQUIRE(readlink("/proc/self/exe", self.data(), self.size() - 1) > 0);
  const std::string command = "'" + std::string(self.data()) + "' '[illegal_address]' >/dev/null 2>&1";
  CHECK(std::system(command.c_str()) == 0);
}
