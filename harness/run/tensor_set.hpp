// One copy of a row's tensors in a device's memory, bound to its problem and ready to launch. Timing rotates over
// several copies, so that none finds its inputs in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "harness/measure/memory_ledger.hpp"
#include "harness/operator/operator.hpp"

namespace inferometer {

// A row whose names are looked up and whose problem is read.
struct ResolvedRow {
  const Operator* op = nullptr;
  const Variant* variant = nullptr;
  std::shared_ptr<const void> problem;
  std::vector<TensorSpec> specs;
};

class TensorSet {
 public:
  // Allocates, fills the inputs from `seed`, and runs the variant's `prepare`. `workspace` is shared between sets:
  // their launches follow one another on one stream.
  TensorSet(const ResolvedRow& row, Device& device, MemoryLedger& ledger, std::uint64_t seed,
            std::span<std::byte> workspace);

  void poison_outputs();  // what a kernel does not write can be told from an answer
  void launch(const Launch& launch) const;

  // Outputs as they are now, after all launches, in memory from `host`; one pointer a tensor, null for inputs.
  std::vector<std::shared_ptr<void>> read_outputs(MemoryLedger& host) const;

 private:
  const ResolvedRow& row_;
  Device& device_;
  std::vector<std::shared_ptr<void>> memory_;  // one a tensor
  std::span<std::byte> workspace_;
  std::shared_ptr<const void> tensors_;  // the operator's struct of typed pointers
  std::shared_ptr<void> state_;          // freed first: it may point into the memory above
};

}  // namespace inferometer
