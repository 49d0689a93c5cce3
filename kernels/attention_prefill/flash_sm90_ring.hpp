// attention_prefill / flash_sm90: where one side of a ring of stages stands.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// The side that fills a stage waits for the parity before: a stage is free when its previous contents were read.
template <int kStages>
struct Ring {
  std::uint32_t uses = 0;

  INFEROMETER_HOST_DEVICE std::uint32_t stage() const { return uses % kStages; }
  // Of the phase that fills the stage.
  INFEROMETER_HOST_DEVICE std::uint32_t parity() const { return uses / kStages % 2; }
  INFEROMETER_HOST_DEVICE void advance() { ++uses; }
};

}  // namespace inferometer
