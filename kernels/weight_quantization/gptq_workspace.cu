// Host code alone; a .cu so that builds without the CUDA Toolkit leave it out.
#include "kernels/weight_quantization/gptq_workspace.hpp"

#include "kernels/common/cublas.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kAlignment = 256;

// Hands out the parts of a workspace one after the other; from null it only counts.
class Parts {
 public:
  explicit Parts(std::byte* memory) : memory_(memory) {}

  template <class T>
  T* take(std::int64_t count) {
    auto* const part = reinterpret_cast<T*>(memory_ == nullptr ? nullptr : memory_ + used_);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* memory_;
  std::size_t used_ = 0;
};

GptqWorkspace take_parts(const WeightQuantizationProblem& p, Parts& parts) {
  GptqWorkspace made;
  made.cublas = {parts.take<std::byte>(kCublasWorkspaceBytes), kCublasWorkspaceBytes};
  made.status = parts.take<GptqStatus>(1);
  made.h = parts.take<double>(p.k * p.k);
  made.w = parts.take<double>(p.n * p.k);
  made.tokens = parts.take<double>(kTokensAtOnce * p.k);
  made.panel = parts.take<double>(p.k * kFactorTile);
  made.diagonal = parts.take<double>(p.k);
  made.live = parts.take<std::uint8_t>(p.k);
  made.errors = parts.take<double>(p.n * kBlockColumns);
  made.row_squares = parts.take<double>(p.n);
  made.row_changes = parts.take<double>(p.n);
  return made;
}

}  // namespace

std::size_t gptq_workspace_bytes(const WeightQuantizationProblem& p) {
  Parts parts(nullptr);
  take_parts(p, parts);
  return parts.used();
}

GptqWorkspace place_gptq_workspace(const WeightQuantizationProblem& p, std::span<std::byte> memory) {
  Parts parts(memory.data());
  return take_parts(p, parts);
}

}  // namespace inferometer
