// Where a row runs.
#pragma once

#include "harness/operator/registry.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

inline bool on_gpu(const SweepRow& row) {
  const Variant* variant = find_variant(row.operator_name, row.variant);
  return variant != nullptr && variant->on_gpu();
}

}  // namespace inferometer
