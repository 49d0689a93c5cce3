// Small kernels around a step: where quantised keys go, and how one step's outputs become the next one's inputs.
#pragma once

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

struct PlaceArgs {
  const std::int32_t* positions = nullptr;  // [tokens], negative: padding
  const std::int32_t* rows = nullptr;       // [tokens], of the table
  const std::int32_t* table = nullptr;      // [.., max_blocks]
  std::int32_t max_blocks = 0;
  std::int32_t block_size = 0;
  std::int32_t spare_block = 0;
  std::int32_t* blocks = nullptr;  // [tokens]: block of the pool
  std::int32_t* slots = nullptr;   // [tokens]: and slot in it; padding goes to slot 0 of the spare block
};
void launch_place(const PlaceArgs& args, std::int64_t tokens, Stream stream);

struct AdvanceArgs {
  const std::int32_t* next = nullptr;  // [rows]
  std::int32_t* ids = nullptr;         // [rows]
  std::int32_t* positions = nullptr;   // [rows]
  std::int32_t* lengths = nullptr;     // [rows]
};
// Every row decodes the token that was just chosen, `by` positions on.
void launch_advance(const AdvanceArgs& args, std::int64_t rows, std::int32_t by, Stream stream);

}  // namespace inferometer::decoder
