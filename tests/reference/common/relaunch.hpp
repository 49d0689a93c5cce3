// Launches a CPU variant several times in the same workspace, on any number of threads: what run_variant does not do.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"

namespace inferometer::test {

using RawOutputs = std::map<std::string, std::vector<std::byte>>;

struct HostLaunch {
  std::uint64_t seed = 1;
  int threads = 1;
};

// The outputs of the last of `launches`, each on inputs of its own seed. The workspace starts zeroed, as promised.
inline RawOutputs relaunch(const std::string& operator_name, const std::string& variant_name, const Fields& fields,
                           const std::vector<HostLaunch>& launches) {
  const Operator* op = find_operator(operator_name);
  const Variant* variant = find_variant(operator_name, variant_name);
  if (op == nullptr || variant == nullptr) throw std::invalid_argument("no " + operator_name + " " + variant_name);
  const auto problem = op->parse(fields);
  const std::vector<TensorSpec> specs = op->tensors(problem.get());
  struct alignas(256) Line {
    std::byte bytes[256];
  };
  std::vector<Line> workspace((variant->workspace_bytes(problem.get()) + 255) / 256);
  RawOutputs outputs;
  for (const HostLaunch& each : launches) {
    std::vector<std::vector<std::byte>> memory;
    std::vector<void*> pointers;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      memory.emplace_back(static_cast<std::size_t>(specs[i].bytes()));
      fill_host(specs[i], each.seed, i, memory.back().data(), 1);
      pointers.push_back(memory.back().data());
    }
    const auto tensors = op->bind(problem.get(), pointers);
    Launch launch;
    launch.workspace = {workspace.data()->bytes, variant->workspace_bytes(problem.get())};
    launch.threads = each.threads;
    variant->run(problem.get(), tensors.get(), launch);
    for (std::size_t i = 0; i < specs.size(); ++i)
      if (specs[i].role == Role::output) outputs[specs[i].name] = memory[i];
  }
  return outputs;
}

}  // namespace inferometer::test
