#include "reference/kv_cache/contiguous_cache.hpp"

#include <vector>

#include "harness/operator/fields.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const ContiguousCacheShape kShape{.layers = 3, .capacity = 5, .kv_heads = 2, .head_dim = 8, .dtype = Dtype::f16};

// Bytes of `tokens` tokens, the same for the same mark and no other.
std::vector<std::byte> rows(std::int64_t tokens, int mark, const ContiguousCacheShape& shape = kShape) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tokens * shape.row_bytes()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(mark + static_cast<int>(i) / static_cast<int>(shape.row_bytes()));
  return bytes;
}

std::vector<std::byte> copy(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

template <class Action>
KvCacheFault fault_of(const Action& action) {
  try {
    action();
  } catch (const KvCacheError& error) {
    INFO(error.what());
    return error.fault();
  }
  FAIL("nothing was refused");
  return {};
}

std::string refused_field(const ContiguousCacheShape& shape) {
  try {
    const ContiguousCache cache(shape);
  } catch (const ProblemError& error) {
    return error.field();
  }
  return {};
}

}  // namespace

TEST_CASE("contiguous cache: tokens one by one and in a chunk give the same prefix", "[kv_cache][contiguous]") {
  ContiguousCache one_by_one(kShape);
  ContiguousCache chunk(kShape);
  for (int t = 0; t < 4; ++t) one_by_one.append(1, rows(1, 10 + t), rows(1, 50 + t));
  chunk.append(1, rows(3, 10), rows(3, 50));
  chunk.append(1, rows(1, 13), rows(1, 53));
  for (const ContiguousCache* cache : {&one_by_one, &chunk}) {
    const KvPrefix prefix = cache->prefix(1);
    CHECK(prefix.tokens == 4);
    CHECK(copy(prefix.keys) == rows(4, 10));
    CHECK(copy(prefix.values) == rows(4, 50));
  }
}

TEST_CASE("contiguous cache: layers are apart, and the cache is as long as its shortest layer",
          "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  for (int layer = 0; layer < 3; ++layer) {
    CHECK(cache.length() == 0);
    cache.append(layer, rows(layer + 1, 20 * layer), rows(layer + 1, 20 * layer + 7));
  }
  CHECK(cache.length() == 1);
  for (int layer = 0; layer < 3; ++layer) {
    CHECK(cache.length(layer) == layer + 1);
    CHECK(copy(cache.prefix(layer).keys) == rows(layer + 1, 20 * layer));
    CHECK(copy(cache.prefix(layer).values) == rows(layer + 1, 20 * layer + 7));
  }
}

TEST_CASE("contiguous cache: a view stays where it is while tokens are added", "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  cache.append(0, rows(2, 1), rows(2, 5));
  const KvPrefix before = cache.prefix(0);
  cache.append(0, rows(3, 3), rows(3, 7));
  CHECK(cache.prefix(0).keys.data() == before.keys.data());
  CHECK(copy(before.keys) == rows(2, 1));
  CHECK(copy(cache.prefix(0).keys) == rows(5, 1));
}

TEST_CASE("contiguous cache: bytes are reserved at once and used as tokens come", "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  CHECK(kShape.row_bytes() == 2 * 8 * 2);
  CHECK(cache.reserved_bytes() == 2 * 3 * 5 * 32);
  CHECK(cache.used_bytes() == 0);
  cache.append(2, rows(4, 1), rows(4, 1));
  cache.append(0, rows(1, 1), rows(1, 1));
  CHECK(cache.used_bytes() == 2 * 5 * 32);
  CHECK(cache.reserved_bytes() == 2 * 3 * 5 * 32);
  // OPT-13B: 40 layers of 40 heads of 128 in f16 take 800 KiB a token.
  const ContiguousCache opt({.layers = 40, .capacity = 1, .kv_heads = 40, .head_dim = 128, .dtype = Dtype::f16});
  CHECK(opt.reserved_bytes() == 800 * 1024);
}

TEST_CASE("contiguous cache: a token beyond the capacity is refused and changes nothing", "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  cache.append(0, rows(4, 1), rows(4, 9));
  CHECK(fault_of([&] { cache.append(0, rows(2, 90), rows(2, 90)); }) == KvCacheFault::full);
  CHECK(cache.length(0) == 4);
  CHECK(copy(cache.prefix(0).keys) == rows(4, 1));
  cache.append(0, rows(1, 5), rows(1, 13));  // the one that fits
  CHECK(fault_of([&] { cache.append(0, rows(1, 90), rows(1, 90)); }) == KvCacheFault::full);
  CHECK(copy(cache.prefix(0).keys) == rows(5, 1));
  CHECK(copy(cache.prefix(0).values) == rows(5, 9));
  CHECK(cache.length(1) == 0);
}

TEST_CASE("contiguous cache: an unknown layer is refused by every call", "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  for (const std::int64_t layer : {-1, 3, 1'000'000}) {
    CAPTURE(layer);
    CHECK(fault_of([&] { cache.append(layer, rows(1, 1), rows(1, 1)); }) == KvCacheFault::unknown_layer);
    CHECK(fault_of([&] { cache.prefix(layer); }) == KvCacheFault::unknown_layer);
    CHECK(fault_of([&] { cache.length(layer); }) == KvCacheFault::unknown_layer);
  }
  CHECK(cache.used_bytes() == 0);
}

TEST_CASE("contiguous cache: keys and values of no whole or of different numbers of tokens are refused",
          "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  std::vector<std::byte> broken = rows(1, 1);
  broken.pop_back();
  CHECK(fault_of([&] { cache.append(0, broken, broken); }) == KvCacheFault::wrong_size);
  CHECK(fault_of([&] { cache.append(0, rows(1, 1), rows(2, 1)); }) == KvCacheFault::wrong_size);
  CHECK(cache.used_bytes() == 0);
}

TEST_CASE("contiguous cache: an empty chunk adds nothing, and clearing makes room again", "[kv_cache][contiguous]") {
  ContiguousCache cache(kShape);
  cache.append(0, {}, {});
  CHECK(cache.length(0) == 0);
  cache.append(0, rows(5, 1), rows(5, 1));
  cache.append(0, {}, {});  // fits even into a full layer
  cache.clear();
  CHECK(cache.length(0) == 0);
  CHECK(cache.prefix(0).keys.empty());
  cache.append(0, rows(5, 30), rows(5, 40));
  CHECK(copy(cache.prefix(0).keys) == rows(5, 30));
}

TEST_CASE("contiguous cache: impossible shapes are refused by the field at fault", "[kv_cache][contiguous]") {
  CHECK(refused_field({.layers = 0}) == "layers");
  CHECK(refused_field({.capacity = -1}) == "capacity");
  CHECK(refused_field({.kv_heads = 0}) == "kv_heads");
  CHECK(refused_field({.head_dim = 0}) == "head_dim");
  const std::int64_t many = std::int64_t{1} << 31;
  CHECK(refused_field({.layers = many, .capacity = many}) == "capacity");
}
