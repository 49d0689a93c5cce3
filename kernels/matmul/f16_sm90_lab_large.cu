// Candidates for large products: tiles of 128 x 256.
#include "kernels/matmul/f16_sm90_lab.cuh"

namespace inferometer::sm90_lab {
namespace {

constexpr Sm90Tile large(bool direct, bool keeps_a, bool pairs, bool turns) {
  return {.weights_are_a = false,
          .tile_b = 256,
          .stages = 4,
          .blocks_per_sm = 1,
          .direct = direct,
          .cuts = !pairs,
          .keeps_a = keeps_a,
          .pairs = pairs,
          .turns = turns};
}

const bool registered = [] {
  add<large(true, false, false, false), 1024, 1 << 30>("256d");
  add<large(false, true, false, false), 1024, 1 << 30>("256h");
  add<large(false, false, false, true), 1024, 1 << 30>("256r");
  add<large(true, false, false, true), 1024, 1 << 30>("256dr");
  add<large(false, false, true, false), 1024, 1 << 30>("256p");
  add<large(true, false, true, true), 1024, 1 << 30>("256pdr");
  return true;
}();

}  // namespace
}  // namespace inferometer::sm90_lab
