// What variants of matmul say of their choices, for the record. Host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/matmul/sm90_plan.hpp"

namespace inferometer {

// An algorithm of cuBLASLt. Its ids are those of cublasLt.h: cublasLtMatmulTile_t, cublasLtMatmulStages_t,
// cublasLtClusterShape_t.
struct CublasLtChoice {
  std::size_t proposal = 0;   // in the library's order, from 0 ...
  std::size_t proposals = 0;  // ... of so many that were timed
  std::int32_t algorithm = 0;
  std::uint32_t tile = 0;
  std::uint32_t stages = 0;
  std::uint16_t cluster_shape = 0;
  std::int32_t split_k = 0;
  std::size_t workspace_bytes = 0;
};

// "proposal 3 of 8 timed: algorithm 66, tile id 23, stages id 36, cluster shape id 3, split-k 1, workspace 0 bytes"
std::string choice_text(const CublasLtChoice& choice);

// "tile of 256 tokens by 128 features, 4 stages, split-k 1, 132 blocks"
std::string choice_text(const Sm90Plan& plan);

}  // namespace inferometer
