// Candidates for few tokens and for small squares.
#include "kernels/matmul/f16_sm90_lab.cuh"

namespace inferometer::sm90_lab {
namespace {

// 64 rows of W by so many tokens, one warpgroup.
constexpr Sm90Tile narrow(int tokens, int stages, int exchange) {
  return {.weights_are_a = true,
          .tile_b = tokens,
          .stages = stages,
          .blocks_per_sm = 1,
          .groups = 1,
          .direct = true,
          .exchange = exchange};
}

// 128 tokens by so many rows of W that the tiles fill the GPU once or twice, k whole ...
constexpr Sm90Tile even(int rows, int stages) { return {false, rows, stages, 1, 2, true, 0, false}; }
// ... or shared out.
constexpr Sm90Tile even_split(int rows, int stages) { return {false, rows, stages, 1, 2, true, 24576, false}; }

constexpr Sm90Tile kWide = {true, 128, 4, 1, 2, true, 73728};        // 128 rows of W, as today
constexpr Sm90Tile k64x128 = {false, 128, 8, 1, 1, true, 0, false};  // 64 tokens, one warpgroup

const bool registered = [] {
  add<narrow(16, 20, 8192), 1, 16>("n16");
  add<narrow(32, 16, 12288), 17, 32>("n32");
  add<narrow(64, 12, 24576), 33, 64>("n64");
  add<narrow(128, 7, 36864), 65, 128>("n128");
  add<kWide, 65, 256>("w128e");
  add<even_split(32, 10), 65, 128>("x32e");
  add<even_split(48, 9), 65, 128>("x48e");
  add<even(48, 9), 65, 128>("x48");
  add<even(64, 8), 65, 1024>("x64");
  add<even(80, 7), 65, 128>("x80");
  add<even(96, 6), 65, 128>("x96");
  add<even(112, 6), 65, 128>("x112");
  add<even(224, 4), 65, 128>("x224");
  add<even(288, 3), 65, 128>("x288");
  add<k64x128, 512, 1024>("y128");
  return true;
}();

}  // namespace
}  // namespace inferometer::sm90_lab
