// Runs one variant on one problem through the same operator interface as the harness, for tests of chosen inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "harness/results/record.hpp"

namespace inferometer::test {

struct VariantRun {
  std::string unsupported;                            // non-empty: the variant's sentence, and nothing below
  std::map<std::string, std::vector<float>> outputs;  // by tensor name, converted to float
  std::map<std::string, std::vector<std::byte>> raw;  // the same, as stored
  Check check;                                        // by the operator's own judge
};

// Changes the operator's tensors before they are filled: other sources, other unused ranges. Sizes stay.
using EditTensors = std::function<void(std::vector<TensorSpec>&)>;

// Fills inputs from `seed`, poisons outputs, prepares, runs once, reads back and judges. GPU variants use device 0;
// guard bytes around every tensor and the workspace are checked: a write outside fails the calling test.
VariantRun run_variant(const std::string& operator_name, const std::string& variant, const Fields& problem,
                       std::uint64_t seed = 1, const EditTensors& edit = {});

}  // namespace inferometer::test
