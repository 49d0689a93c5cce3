#include "harness/run/tensor_set.hpp"

#include <string_view>

namespace inferometer {
namespace {

std::string_view ledger_role(Role role) {
  switch (role) {
    case Role::input: return "inputs";
    case Role::output: return "outputs";
    case Role::weights: return "weights";
    case Role::kv_pool: return "kv_pool";
  }
  return "inputs";
}

std::size_t bytes_of(const TensorSpec& spec) { return static_cast<std::size_t>(spec.bytes()); }

}  // namespace

TensorSet::TensorSet(const ResolvedRow& row, Device& device, MemoryLedger& ledger, std::uint64_t seed,
                     std::span<std::byte> workspace)
    : row_(row), device_(device), workspace_(workspace) {
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < row.specs.size(); ++i) {
    const TensorSpec& spec = row.specs[i];
    memory_.push_back(ledger.allocate(bytes_of(spec), ledger_role(spec.role)));
    pointers.push_back(memory_.back().get());
    if (spec.role != Role::output) device.fill(spec, seed, i, pointers.back());
  }
  poison_outputs();
  tensors_ = row.op->bind(row.problem.get(), pointers);
  Launch launch = device.launch();
  launch.workspace = workspace_;
  state_ = row.variant->prepare(row.problem.get(), tensors_.get(), launch, ledger);
}

void TensorSet::poison_outputs() {
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if (row_.specs[i].role == Role::output)
      device_.set_bytes(memory_[i].get(), row_.specs[i].poison, bytes_of(row_.specs[i]));
}

void TensorSet::launch(const Launch& launch) const {
  Launch own = launch;
  own.workspace = workspace_;
  own.state = state_.get();
  row_.variant->run(row_.problem.get(), tensors_.get(), own);
}

std::vector<std::shared_ptr<void>> TensorSet::read_outputs(MemoryLedger& host) const {
  std::vector<std::shared_ptr<void>> outputs(memory_.size());
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    if (row_.specs[i].role != Role::output) continue;
    outputs[i] = host.allocate(bytes_of(row_.specs[i]), "readback");
    device_.copy_to_host(outputs[i].get(), memory_[i].get(), bytes_of(row_.specs[i]));
  }
  return outputs;
}

}  // namespace inferometer
