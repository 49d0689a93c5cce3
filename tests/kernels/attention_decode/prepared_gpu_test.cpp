// Problems that are prepared side by side, as in a program that decodes several models.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {
namespace {

// With splits given, the same kernel runs without the shared memory in which the blocks of a cluster meet.
TEST_CASE("decode kernels: a problem runs as prepared although another was prepared since", "[attention_decode][gpu]") {
  const DecodeShape first{.contexts = {1024}, .q_heads = 32, .kv_heads = 8, .head_dim = 128, .kv_bits = 8};
  DecodeShape second = first;
  second.splits = 1;
  const VariantRun alone = run_decode(first);

  const std::unique_ptr<Device> device = gpu();
  const Operator& op = *find_operator("attention_decode");
  const Variant& variant = *find_variant("attention_decode", "cuda.contiguous");
  const auto problem = op.parse(first.fields());
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  GuardedMemory memory(*device);
  std::vector<std::shared_ptr<void>> owners;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    owners.push_back(memory.allocate(static_cast<std::size_t>(specs[i].bytes()), specs[i].name));
    pointers.push_back(owners.back().get());
    device->fill(specs[i], 1, i, pointers.back());  // with the seed of run_decode
  }
  const auto tensors = op.bind(problem.get(), pointers);
  Launch launch = device->launch();
  const std::size_t workspace_bytes = variant.workspace_bytes(problem.get());
  const auto workspace = memory.allocate(workspace_bytes + 1, "the workspace");  // + 1: it may need none
  device->set_zero(workspace.get(), workspace_bytes + 1);
  launch.workspace = {static_cast<std::byte*>(workspace.get()), workspace_bytes};

  const auto state = variant.prepare(problem.get(), tensors.get(), launch, memory);
  const auto other_problem = op.parse(second.fields());
  const auto other_state = variant.prepare(other_problem.get(), tensors.get(), launch, memory);
  REQUIRE(other_state != state);
  launch.state = state.get();
  variant.run(problem.get(), tensors.get(), launch);
  device->synchronize();

  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::output) continue;
    std::vector<std::byte> raw(static_cast<std::size_t>(specs[i].bytes()));
    device->copy_to_host(raw.data(), pointers[i], raw.size());
    INFO(specs[i].name);
    CHECK(raw == alone.raw.at(specs[i].name));
  }
}

}  // namespace
}  // namespace inferometer::test
