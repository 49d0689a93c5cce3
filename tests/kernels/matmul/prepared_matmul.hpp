// A variant of matmul with memory of its own, for tests of what holds between launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/fields.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"

namespace inferometer::test {

// One variant with tensors, workspace and stream of its own, launched as often as a test likes.
class PreparedMatmul {
 public:
  PreparedMatmul(Device& device, const std::string& variant, const Fields& fields, std::uint64_t seed)
      : device_(device), variant_(*find_variant("matmul", variant)) {
    const Operator& op = *find_operator("matmul");
    problem_ = op.parse(fields);
    INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&launch_.stream, cudaStreamNonBlocking));
    std::vector<void*> pointers;
    const std::vector<TensorSpec> specs = op.tensors(problem_.get());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      pointers.push_back(allocate(static_cast<std::size_t>(specs[i].bytes())));
      device_.fill(specs[i], seed, i, pointers.back());
    }
    y_ = pointers.back();
    y_bytes_ = static_cast<std::size_t>(specs.back().bytes());
    tensors_ = op.bind(problem_.get(), pointers);
    if (const std::size_t bytes = variant_.workspace_bytes(problem_.get()); bytes != 0) {
      launch_.workspace = {static_cast<std::byte*>(allocate(bytes)), bytes};
      device_.set_zero(launch_.workspace.data(), bytes);
    }
    device_.synchronize();
    DeviceAllocator allocator(device_);
    state_ = variant_.prepare(problem_.get(), tensors_.get(), launch_, allocator);
    launch_.state = state_.get();
  }

  ~PreparedMatmul() {
    cudaStreamSynchronize(launch_.stream);
    for (void* memory : memory_) device_.release(memory);
    cudaStreamDestroy(launch_.stream);
  }
  PreparedMatmul(const PreparedMatmul&) = delete;
  PreparedMatmul& operator=(const PreparedMatmul&) = delete;

  void launch() { variant_.run(problem_.get(), tensors_.get(), launch_); }

  void launch_on(Stream stream) {
    Launch other = launch_;
    other.stream = stream;
    variant_.run(problem_.get(), tensors_.get(), other);
  }

  void poison_y() { INFEROMETER_CUDA_CHECK(cudaMemsetAsync(y_, 0xff, y_bytes_, launch_.stream)); }

  std::vector<std::byte> y() {
    INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch_.stream));
    std::vector<std::byte> bytes(y_bytes_);
    device_.copy_to_host(bytes.data(), y_, bytes.size());
    return bytes;
  }

 private:
  class DeviceAllocator : public Allocator {
   public:
    explicit DeviceAllocator(Device& device) : device_(device) {}
    std::shared_ptr<void> allocate(std::size_t bytes, std::string_view) override {
      return {device_.allocate(bytes), [&device = device_](void* memory) { device.release(memory); }};
    }

   private:
    Device& device_;
  };

  void* allocate(std::size_t bytes) {
    memory_.push_back(device_.allocate(bytes));
    return memory_.back();
  }

  Device& device_;
  const Variant& variant_;
  std::shared_ptr<const void> problem_;
  std::vector<void*> memory_;
  std::shared_ptr<const void> tensors_;
  void* y_ = nullptr;
  std::size_t y_bytes_ = 0;
  Launch launch_;
  std::shared_ptr<void> state_;
};

// Two launches at once, on streams, tensors and workspaces of their own, leave what each leaves alone, however often.
inline void check_two_streams(Device& device, const std::string& variant, const Fields& fields, int repeats) {
  PreparedMatmul one(device, variant, fields, 1);
  PreparedMatmul other(device, variant, fields, 2);
  one.launch();
  const std::vector<std::byte> one_alone = one.y();
  other.launch();
  const std::vector<std::byte> other_alone = other.y();
  CHECK(one_alone != other_alone);
  one.poison_y();
  other.poison_y();
  for (int repeat = 0; repeat < repeats; ++repeat) {
    one.launch();
    other.launch();
  }
  CHECK(one.y() == one_alone);
  CHECK(other.y() == other_alone);
}

}  // namespace inferometer::test
