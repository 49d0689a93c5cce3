// A variant of another operator as a part of the decoder: any variant that is registered can be put in by its name.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/registry.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

// One problem, prepared; launched as often as one likes, on other tensors too.
template <class Op>
class OperatorLaunch {
 public:
  using Problem = typename Op::Problem;
  using Tensors = typename Op::Tensors;

  // Throws std::runtime_error with the variant's sentence for a problem that it cannot do. Not while a stream is
  // captured: it may allocate.
  OperatorLaunch(std::string_view variant, Problem problem, const Tensors& tensors, Stream stream, Allocator& allocator)
      : variant_(find_variant(Op::kName, variant)), problem_(std::move(problem)) {
    const std::string name = std::string(Op::kName) + "/" + std::string(variant);
    if (variant_ == nullptr) throw std::runtime_error("decoder: this program has no " + name);
    if (const auto sentence = variant_->unsupported(&problem_))
      throw std::runtime_error("decoder: " + name + ": " + *sentence);
    launch_.stream = stream;
    if (const std::size_t bytes = variant_->workspace_bytes(&problem_); bytes > 0) {
      workspace_ = allocator.allocate(bytes, "workspace");
      INFEROMETER_CUDA_CHECK(cudaMemsetAsync(workspace_.get(), 0, bytes, stream));
      launch_.workspace = {static_cast<std::byte*>(workspace_.get()), bytes};
    }
    state_ = variant_->prepare(&problem_, &tensors, launch_, allocator);
    launch_.state = state_.get();
  }

  void run(const Tensors& tensors, Stream stream) const { run(problem_, tensors, stream); }

  // What run() gives the variant.
  const Problem& problem() const { return problem_; }
  Launch launch(Stream stream) const {
    Launch launch = launch_;
    launch.stream = stream;
    return launch;
  }

  // For variants that prepare nothing: another problem, with no larger workspace.
  void run(const Problem& problem, const Tensors& tensors, Stream stream) const {
    variant_->run(&problem, &tensors, launch(stream));
  }

 private:
  const Variant* variant_;
  Problem problem_;
  std::shared_ptr<void> workspace_;
  std::shared_ptr<void> state_;
  Launch launch_;
};

}  // namespace inferometer::decoder
