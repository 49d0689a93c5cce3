// At which shapes points lie inside the accepted range, in a line.
#pragma once

#include <string>
#include <vector>

#include "harness/claims/measurement.hpp"

namespace inferometer {

// Points inside and outside: the field, variant or device that parts them best, and how many of its values are inside:
// "by head_dim: 64 to 128 at 92 of 92, 192 to 256 at 3 of 8". All or none inside: the extent of every field that
// varies, "q_len 128 to 16384, causal false or true". Empty below two points.
std::string describe_shapes(const std::vector<ClaimPoint>& points);

}  // namespace inferometer
