// From float weights through GPTQ, a file of each format, import and packing to Y on the GPU.
#include "tests/reference/checkpoint/exported_layer.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("exported layer: cuda.w4a16 and cuda.w8a16 give the dequantised product of the imported weights",
          "[weight_quantization][checkpoint][matmul][gpu]") {
  for (const ExportedLayer& layer : exported_layers())
    check_product(layer.imported.format.bits == 4 ? "cuda.w4a16" : "cuda.w8a16", layer);
}
