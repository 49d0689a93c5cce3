#include "kernels/matmul/choice_text.hpp"

#include "kernels/matmul/sm90_tile_table.hpp"

namespace inferometer {

std::string choice_text(const CublasLtChoice& choice) {
  return "proposal " + std::to_string(choice.proposal + 1) + " of " + std::to_string(choice.proposals) +
         " timed: algorithm " + std::to_string(choice.algorithm) + ", tile id " + std::to_string(choice.tile) +
         ", stages id " + std::to_string(choice.stages) + ", cluster shape id " + std::to_string(choice.cluster_shape) +
         ", split-k " + std::to_string(choice.split_k) + ", workspace " + std::to_string(choice.workspace_bytes) +
         " bytes";
}

std::string choice_text(const Sm90Plan& plan) {
  const Sm90Tile& tile = kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile;
  const int tokens = tile.weights_are_a ? tile.tile_b : tile.tile_a();
  const int features = tile.weights_are_a ? tile.tile_a() : tile.tile_b;
  return "tile of " + std::to_string(tokens) + " tokens by " + std::to_string(features) + " features, " +
         std::to_string(tile.stages) + " stages, split-k " + std::to_string(plan.work.split) + ", " +
         std::to_string(plan.blocks) + " blocks" + (tile.pairs ? " in pairs" : "");
}

}  // namespace inferometer
