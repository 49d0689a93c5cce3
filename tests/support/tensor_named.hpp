// Picks a tensor out of those of an operator, for tests that change what it holds.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/tensor.hpp"

namespace inferometer::test {

inline TensorSpec& tensor_named(std::vector<TensorSpec>& specs, std::string_view name) {
  for (TensorSpec& spec : specs)
    if (spec.name == name) return spec;
  throw std::out_of_range("no tensor " + std::string(name));
}

}  // namespace inferometer::test
