// From float weights through GPTQ and a file of each format to the CPU's product.
#include "tests/reference/checkpoint/exported_layer.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("exported layer: what comes from the file is worth what GPTQ made, weight by weight", "[checkpoint]") {
  for (const ExportedLayer& layer : exported_layers()) {
    INFO(layer.name);
    REQUIRE((layer.imported.n == layer.quantized.n && layer.imported.k == layer.quantized.k));
    CHECK(layer.imported.scales == layer.quantized.scales);
    for (std::int64_t j = 0; j < layer.quantized.n; ++j)
      for (std::int64_t i = 0; i < layer.quantized.k; ++i)
        REQUIRE(layer.imported.weight(j, i) == layer.quantized.weight(j, i));
  }
}

TEST_CASE("exported layer: the product with the imported weights is the dequantised one", "[checkpoint][matmul]") {
  for (const ExportedLayer& layer : exported_layers()) check_product("cpu.dequantize", layer);
}
