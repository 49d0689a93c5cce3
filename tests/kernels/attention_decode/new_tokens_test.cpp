// Who takes the newest key of a sequence to itself.
#include <algorithm>
#include <cstdint>

#include "kernels/attention_decode/partition.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr int kTileKeys = 16;

// Tiles, of all parts and warps, that would take the newest key: as the kernel goes through them.
int takers(int length, int parts, int keys, int warps, int first) {
  int count = 0;
  for (int part = 0; part < parts; ++part) {
    const int first_key = first + part * keys;
    const int end_key = std::min(first_key + keys, length);
    const int newest = newest_key_warp(first_key, end_key, length, kTileKeys, warps);
    for (int warp = 0; warp < warps; ++warp)
      for (int key = first_key + warp * kTileKeys; key < end_key; key += warps * kTileKeys) {
        const bool holds = key <= length - 1 && length - 1 < key + kTileKeys;
        const bool takes = warp == newest && length - 1 - key < kTileKeys;
        if (holds != takes) return -1;
        count += takes ? 1 : 0;
      }
  }
  return count;
}

}  // namespace

TEST_CASE("partition: the newest key belongs to one tile, and a sequence without keys has none", "[attention_decode]") {
  for (const int warps : {4, 8})
    for (const int parts : {1, 2, 3, 8, 16, 33})
      for (const int longest : {256, 2048})
        for (int length = 0; length <= longest; ++length) {
          INFO("warps " << warps << ", parts " << parts << ", longest " << longest << ", length " << length);
          const int expected = length == 0 ? 0 : 1;
          REQUIRE(takers(length, parts, part_keys(longest, parts), warps, 0) == expected);
          REQUIRE(takers(length, parts, part_keys(length, parts), warps, 0) == expected);
          const int first = first_part_key(length, 1, 100);
          REQUIRE(takers(length, parts, part_keys(length - first, parts), warps, first) == expected);
        }
}

}  // namespace inferometer::test
