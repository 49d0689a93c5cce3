// X as weight_only_wgmma_kernel has the copy engine read it.
#pragma once

#include <cuda.h>

namespace inferometer {

// X [m, k] in boxes of a slice of k and of a tile's tokens: of whole tiles, and of the last one. A row past the end
// would cost the copy engine several times one that is there.
struct WeightOnlyWgmmaX {
  CUtensorMap whole;
  CUtensorMap last;
};

}  // namespace inferometer
