// What quantised weights and quantised keys are worth: the rules of problem.hpp and reference/kv_cache/layout.hpp,
// applied and undone.
#pragma once

#include <cstdint>
#include <span>

namespace inferometer {

// A row of weights becomes what its codes of 8 or 4 bits are worth, group by group of kWeightGroup. Elements are f16
// values. 16 bits: nothing changes.
void quantize_weight_row(std::int64_t bits, std::span<float> row);

// A key or value of one head likewise, as the cache keeps it: rounded to f16, and with 8 or 4 bits to codes with one
// scale.
void quantize_kv_head(std::int64_t bits, std::span<float> head);

}  // namespace inferometer
