// What must hold between launches of cublas.f16 and cuda.f16_sm80: the same bits, a reusable workspace, streams apart.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/registry.hpp"
#include "tests/kernels/matmul/matmul_problem.hpp"

namespace inferometer::test {
namespace {

std::unique_ptr<Device> gpu() {
  std::string reason;
  std::unique_ptr<Device> device = make_gpu_device(0, reason);
  if (device == nullptr) throw std::runtime_error(reason);
  return device;
}

// One variant with tensors, workspace and stream of its own, launched as often as a test likes.
class PreparedMatmul {
 public:
  PreparedMatmul(Device& device, const std::string& variant, const MatmulProblem& problem, std::uint64_t seed)
      : device_(device), variant_(*find_variant("matmul", variant)) {
    const Operator& op = *find_operator("matmul");
    problem_ = op.parse(matmul_fields(problem));
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
    NoAllocator none;
    state_ = variant_.prepare(problem_.get(), tensors_.get(), launch_, none);
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
  struct NoAllocator : Allocator {
    std::shared_ptr<void> allocate(std::size_t, std::string_view) override {
      throw std::logic_error("matmul variants keep no memory of their own");
    }
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

// Whole tiles, tiles shared by two blocks and by many, and rows of Y that are not 16-byte aligned.
const std::vector<MatmulProblem> kProblems = {{.m = 1, .n = 4096, .k = 4096},
                                              {.m = 64, .n = 4096, .k = 4096},
                                              {.m = 100, .n = 1441, .k = 4104},
                                              {.m = 257, .n = 4096, .k = 4096},
                                              {.m = 1000, .n = 3000, .k = 512}};

TEST_CASE("matmul: every launch gives the same bits and leaves its workspace usable", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : kProblems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      PreparedMatmul matmul(*device, variant, problem, 1);
      matmul.launch();
      const std::vector<std::byte> first = matmul.y();
      for (int repeat = 0; repeat < 20; ++repeat) {
        matmul.poison_y();
        matmul.launch();
        CHECK(matmul.y() == first);
      }
    }
  }
}

TEST_CASE("matmul: two streams at once do not meet", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : kProblems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      PreparedMatmul one(*device, variant, problem, 1);
      PreparedMatmul other(*device, variant, problem, 2);
      one.launch();
      const std::vector<std::byte> one_alone = one.y();
      other.launch();
      const std::vector<std::byte> other_alone = other.y();
      CHECK(one_alone != other_alone);
      one.poison_y();
      other.poison_y();
      for (int repeat = 0; repeat < 20; ++repeat) {
        one.launch();
        other.launch();
      }
      CHECK(one.y() == one_alone);
      CHECK(other.y() == other_alone);
    }
  }
}

TEST_CASE("matmul: one token more costs at most 30 % more time", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  const auto median_ns = [&](std::int64_t m) {
    PreparedMatmul matmul(*device, "cuda.f16_sm80", {.m = m, .n = 4096, .k = 4096}, 1);
    const MeasureConfig config{.min_samples = 20, .max_samples = 60, .max_seconds = 0.2};
    return device->time([&](int, const Launch& launch) { matmul.launch_on(launch.stream); }, 1, config)
        .isolated.median_ns;
  };
  for (const std::int64_t m : {1, 7, 8, 15, 16, 32, 48, 63, 64, 80, 96, 127, 128, 160, 192, 224, 256}) {
    const double before = median_ns(m);
    const double after = median_ns(m + 1);
    INFO("m=" << m << ": " << before << " ns, m=" << m + 1 << ": " << after << " ns");
    CHECK(after <= 1.3 * before);
  }
}

}  // namespace
}  // namespace inferometer::test
