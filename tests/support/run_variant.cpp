#include "tests/support/run_variant.hpp"

#include <memory>
#include <span>
#include <stdexcept>

#include "harness/judge/judge.hpp"
#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {
namespace {

// One device of each kind for all tests, never destroyed: a GPU's context may be gone when static objects are.
Device& cpu_device() {
  static Device* const device = make_cpu_device(0).release();
  return *device;
}

Device& gpu_device() {
  static Device* const device = [] {
    std::string reason;
    std::unique_ptr<Device> made = make_gpu_device(0, reason);
    if (made == nullptr) throw std::runtime_error("no GPU to run this variant on: " + reason);
    return made.release();
  }();
  return *device;
}

const Operator& operator_named(const std::string& name) {
  const Operator* found = find_operator(name);
  if (found == nullptr) throw std::invalid_argument("no operator '" + name + "' in this test program");
  return *found;
}

const Variant& variant_named(const std::string& operator_name, const std::string& name) {
  const Variant* found = find_variant(operator_name, name);
  if (found != nullptr) return *found;
  std::string names;
  for (const Variant* variant : variants_of(operator_name)) names += " " + variant->name;
  throw std::invalid_argument("no variant '" + name + "' of " + operator_name +
                              " in this test program; there are:" + names);
}

// Why this variant cannot run here or cannot do this problem; empty when it can.
std::string why_unsupported(const Variant& variant, const void* problem) {
  if (!variant.not_built.empty()) return variant.not_built;
  if (const auto sentence = variant.unsupported(problem)) return *sentence;
  if (!variant.on_gpu()) return {};
  const int sm = gpu_device().gpu()->sm;
  if (sm >= variant.min_sm) return {};
  return variant.name + " needs compute capability " + std::to_string(variant.min_sm) + ", this GPU has " +
         std::to_string(sm);
}

// What a variant works on: guarded, filled tensors in the operator's order.
struct Memory {
  std::vector<std::shared_ptr<void>> owners;
  std::vector<void*> pointers;
};

Memory filled_tensors(GuardedMemory& guarded, Device& device, const std::vector<TensorSpec>& specs,
                      std::uint64_t seed) {
  Memory memory;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(specs[i].bytes());
    memory.owners.push_back(guarded.allocate(bytes, specs[i].name));
    memory.pointers.push_back(memory.owners.back().get());
    device.fill(specs[i], seed, i, memory.pointers.back());  // poisons outputs
  }
  return memory;
}

void run_once(const Variant& variant, const void* problem, const void* tensors, Device& device,
              GuardedMemory& guarded) {
  Launch launch = device.launch();
  const std::size_t workspace_bytes = variant.workspace_bytes(problem);
  std::shared_ptr<void> workspace;
  if (workspace_bytes != 0) {
    workspace = guarded.allocate(workspace_bytes, "the workspace");
    device.set_zero(workspace.get(), workspace_bytes);
    launch.workspace = {static_cast<std::byte*>(workspace.get()), workspace_bytes};
  }
  const std::shared_ptr<void> state = variant.prepare(problem, tensors, launch, guarded);
  launch.state = state.get();
  variant.run(problem, tensors, launch);
  for (const std::string& violation : guarded.violations()) FAIL_CHECK(variant.name + ": " + violation);
}

}  // namespace

VariantRun run_variant(const std::string& operator_name, const std::string& variant_name, const Fields& fields,
                       std::uint64_t seed, const EditTensors& edit) {
  const Operator& op = operator_named(operator_name);
  const Variant& variant = variant_named(operator_name, variant_name);
  const std::shared_ptr<const void> problem = op.parse(fields);
  VariantRun result;
  result.unsupported = why_unsupported(variant, problem.get());
  if (!result.unsupported.empty()) return result;

  std::vector<TensorSpec> specs = op.tensors(problem.get());
  if (edit) edit(specs);
  Device& device = variant.on_gpu() ? gpu_device() : cpu_device();
  GuardedMemory guarded(device);
  const Memory memory = filled_tensors(guarded, device, specs, seed);
  const std::shared_ptr<const void> tensors = op.bind(problem.get(), memory.pointers);
  run_once(variant, problem.get(), tensors.get(), device, guarded);

  std::vector<OutputView> views;
  std::vector<const void*> pointers(specs.size(), nullptr);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::output) continue;
    std::vector<std::byte>& raw = result.raw[specs[i].name];
    raw.resize(static_cast<std::size_t>(specs[i].bytes()));
    device.copy_to_host(raw.data(), memory.pointers[i], raw.size());
    result.outputs[specs[i].name] = to_floats(specs[i].dtype, raw.data(), 0, specs[i].elements());
    views.push_back({.spec = &specs[i], .data = raw.data()});
    pointers[i] = raw.data();
  }
  const int threads = cpu_device().launch().threads;
  const std::vector<ExpectedSpan> expected = op.expect(problem.get(), Inputs(specs, seed), seed, threads);
  result.check = judge(
      views, expected, [&](std::string_view tensor) { return op.tolerance(problem.get(), tensor); }, op.reference,
      threads);
  if (result.check.passed) {
    result.check.reason = op.audit(problem.get(), variant.name, pointers);
    result.check.passed = result.check.reason.empty();
  }
  return result;
}

}  // namespace inferometer::test
