// Which rows of a large problem to compute exactly: a bounded sample that looks where kernels break.
#pragma once

#include <cstdint>
#include <vector>

namespace inferometer {

// At most `count` of the indices 0 .. rows - 1, ascending, each once; all of them when rows <= count. Chosen in this
// order: the first and the last, both sides of the first and last multiples of 16, 64 and 128 (tile edges), then
// random ones of which half lie beside a random multiple. The same for the same arguments. count >= 1, rows >= 0.
std::vector<std::int64_t> sample_rows(std::int64_t rows, std::int64_t count, std::uint64_t seed);

}  // namespace inferometer
