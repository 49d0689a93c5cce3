// A variant: one implementation of an operator. It registers itself in its own source file:
//
//   const RegisterVariant<AttentionPrefill> registered{{
//       .name = "cuda.flash_sm80", .summary = "mma.sync, cp.async, online softmax",
//       .min_sm = 80, .unsupported = &unsupported, .run = &run,
//   }};
//
// `.name` and `.summary` are literals, one right behind the other: a build without CUDA reads them from the source.
// Small on purpose: this header goes through nvcc, so no JSON, no Eigen, no iostream.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

struct CUstream_st;  // cudaStream_t is a pointer to it

namespace inferometer {

using Stream = CUstream_st*;

// Memory beyond the tensors that a variant's `prepare` needs to keep (packed weights, say); freed with its State.
// Allocations go through the row's memory ledger.
class Allocator {
 public:
  virtual ~Allocator() = default;
  virtual std::shared_ptr<void> allocate(std::size_t bytes, std::string_view role) = 0;
};

struct Launch {
  Stream stream = nullptr;  // GPU variants
  std::span<std::byte>
      workspace;          // workspace_bytes(problem), 256-byte aligned, zeroed once; a launch leaves it reusable
  void* state = nullptr;  // what `prepare` returned
  int threads = 1;        // CPU variants
};

// What an author writes. Op has Problem, Tensors (raw typed pointers) and kName.
template <class Op>
struct VariantSpec {
  std::string_view name;     // "<backend>.<method>[_<architecture>]"
  std::string_view summary;  // one line for `list`
  int min_sm = 0;            // GPU variants: least compute capability, 80 for 8.0
  // A sentence when this variant cannot do the problem; it reaches the user.
  std::optional<std::string> (*unsupported)(const typename Op::Problem&) = nullptr;
  std::size_t (*workspace_bytes)(const typename Op::Problem&) = nullptr;
  // Untimed, once per set of tensors, after the inputs are filled. The result outlives every run with these tensors.
  std::shared_ptr<void> (*prepare)(const typename Op::Problem&, const typename Op::Tensors&, const Launch&,
                                   Allocator&) = nullptr;
  // One launch. GPU variants only enqueue work on launch.stream; CPU variants return when done.
  void (*run)(const typename Op::Problem&, const typename Op::Tensors&, const Launch&) = nullptr;
};

// The same, with problem and tensors behind pointers to Op's types.
struct Variant {
  std::string operator_name;
  std::string name;
  std::string summary;
  int min_sm = 0;
  std::string not_built;  // non-empty: the reason why this build has only the name
  std::function<std::optional<std::string>(const void* problem)> unsupported;
  std::function<std::size_t(const void* problem)> workspace_bytes;
  std::function<std::shared_ptr<void>(const void* problem, const void* tensors, const Launch&, Allocator&)> prepare;
  std::function<void(const void* problem, const void* tensors, const Launch&)> run;

  std::string backend() const { return name.substr(0, name.find('.')); }  // "cpu", "cuda", "cublas"
  bool on_gpu() const { return backend() != "cpu"; }
};

// Ends the program at start-up with exit code 2, naming what is registered twice or under a name without a backend.
void register_variant(Variant variant);

template <class Op>
struct RegisterVariant {
  explicit RegisterVariant(const VariantSpec<Op>& spec) {
    using Problem = typename Op::Problem;
    using Tensors = typename Op::Tensors;
    Variant variant;
    variant.operator_name = Op::kName;
    variant.name = spec.name;
    variant.summary = spec.summary;
    variant.min_sm = spec.min_sm;
    variant.unsupported = [f = spec.unsupported](const void* problem) {
      return f != nullptr ? f(*static_cast<const Problem*>(problem)) : std::nullopt;
    };
    variant.workspace_bytes = [f = spec.workspace_bytes](const void* problem) {
      return f != nullptr ? f(*static_cast<const Problem*>(problem)) : std::size_t{0};
    };
    variant.prepare = [f = spec.prepare](const void* problem, const void* tensors, const Launch& launch,
                                         Allocator& allocator) -> std::shared_ptr<void> {
      if (f == nullptr) return nullptr;
      return f(*static_cast<const Problem*>(problem), *static_cast<const Tensors*>(tensors), launch, allocator);
    };
    variant.run = [f = spec.run](const void* problem, const void* tensors, const Launch& launch) {
      f(*static_cast<const Problem*>(problem), *static_cast<const Tensors*>(tensors), launch);
    };
    register_variant(std::move(variant));
  }
};

}  // namespace inferometer
