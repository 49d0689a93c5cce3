// Which block of the chain of products has which rows.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/decoder/product_chain_shape.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

using decoder::chain_share;
using decoder::ChainProduct;
using decoder::ChainShape;
using decoder::ChainShare;
using decoder::kChainProducts;

constexpr ChainShape kShapes[] = {
    {64, 64, 64, 64}, {1088, 960, 2752, 1152}, {4096, 4096, 14336, 6144}, {8192, 8192, 28672, 10240}};

// Rows of h, of q, k and v, or features; a tile of packed weights is 16 rows, where it is gated 8 features.
int units_of(const ChainShape& shape, ChainProduct product, int unit) {
  const int rows = chain_rows(shape, product);
  return unit == 1 && product == ChainProduct::gate_up ? rows / 2 : rows / unit;
}

TEST_CASE("product chain: every unit of a product is one block's, and shares differ by one at most",
          "[decoder][product_chain]") {
  for (const ChainShape& shape : kShapes)
    for (const int unit : {1, 16})
      for (const int blocks : {1, 7, 132})
        for (int p = 0; p < kChainProducts; ++p) {
          const auto product = static_cast<ChainProduct>(p);
          INFO("hidden " << shape.hidden << ", units of " << unit << ", " << blocks << " blocks, product " << p);
          const int units = units_of(shape, product, unit);
          std::vector<int> owners(static_cast<std::size_t>(units), 0);
          bool even = true;
          for (int block = 0; block < blocks; ++block) {
            const ChainShare share = chain_share(shape, product, unit, blocks, block);
            even = even && (share.count == units / blocks || share.count == units / blocks + 1);
            for (int i = 0; i < share.count; ++i) ++owners.at(static_cast<std::size_t>(share.begin + i));
          }
          CHECK(even);
          CHECK(std::all_of(owners.begin(), owners.end(), [](int count) { return count == 1; }));
        }
}

TEST_CASE("product chain: a block has the same rows of h in both products that add to it", "[decoder][product_chain]") {
  for (const ChainShape& shape : kShapes)
    for (int block = 0; block < 132; ++block) {
      const ChainShare first = chain_share(shape, ChainProduct::attention_out, 16, 132, block);
      const ChainShare second = chain_share(shape, ChainProduct::down, 16, 132, block);
      CHECK(first.begin == second.begin);
      CHECK(first.count == second.count);
    }
}

TEST_CASE("product chain: over gate and up, down and q, k and v longer shares go round", "[decoder][product_chain]") {
  for (const ChainShape& shape : kShapes)
    for (const int unit : {1, 16}) {
      std::vector<int> longer(132, 0);
      for (const ChainProduct product : {ChainProduct::down, ChainProduct::gate_up, ChainProduct::next_qkv})
        for (int block = 0; block < 132; ++block)
          longer[static_cast<std::size_t>(block)] +=
              chain_share(shape, product, unit, 132, block).count - units_of(shape, product, unit) / 132;
      const auto [least, most] = std::minmax_element(longer.begin(), longer.end());
      CHECK(*most - *least <= 1);
    }
}

}  // namespace
}  // namespace inferometer::test
