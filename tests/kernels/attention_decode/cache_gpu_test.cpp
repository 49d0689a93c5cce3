// Where K and V lie: pages of any size in any order, free slots of any content, offsets past 32 bits.
#include <algorithm>
#include <limits>

#include "harness/measure/device.hpp"
#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEST_CASE("decode kernels: what free slots hold changes no bit of the output", kTags) {
  const std::vector<DecodeCase> cases = {
      {.contexts = {13}, .block_size = 4},
      {.contexts = {13, 0, 29}, .q_len = 2, .block_size = 16},
      {.contexts = {32, 64, 96, 48, 128}},
      {.contexts = {1, 127, 128}, .q_heads = 12, .head_dim = 128},
  };
  for (const DecodeCase& c : cases) {
    const VariantRun clean = run_decode(c, fill_tokens(c, random_value, 0.25F));
    for (const float unused : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()}) {
      const VariantRun run = run_decode(c, fill_tokens(c, random_value, unused));
      INFO(describe(c) << " unused slots " << unused);
      CHECK(run.raw.at("o") == clean.raw.at("o"));
      CHECK(run.raw.at("lse") == clean.raw.at("lse"));
    }
  }
}

TEST_CASE("decode kernels: a shuffled paged cache gives the bits of the contiguous one", kTags) {
  for (const std::int64_t page : {1, 3, 16, 64, 128, 256, 512})
    for (const std::int64_t length : {std::int64_t{1}, page - 1, page, page + 1, std::int64_t{1000}}) {
      if (length == 0) continue;
      DecodeCase c{.contexts = {length, 5}, .kv_heads = 2, .splits = 2};
      const VariantRun contiguous = run_decode(c, fill_tokens(c, random_value, 0.0F));
      c.block_size = page;
      const VariantRun paged = run_decode(c, fill_tokens(c, random_value, 0.0F));
      INFO(describe(c));
      CHECK(paged.raw.at("o") == contiguous.raw.at("o"));
      CHECK(paged.raw.at("lse") == contiguous.raw.at("lse"));
    }
}

// The pool is widened to 2^32 elements and more of K and of V, 17 GB in all; only the blocks of one short sequence hold
// numbers, the rest NaN: a wrapped offset cannot go unseen.
TEST_CASE("decode kernels: block offsets past 2^31 and 2^32 elements are right", kTags) {
  constexpr std::int64_t kBlockSize = 16;
  const DecodeCase c{
      .contexts = {7 * kBlockSize - 3}, .q_heads = 8, .kv_heads = 8, .head_dim = 256, .block_size = kBlockSize};
  constexpr std::int64_t kBlockElements = kBlockSize * 8 * 256;  // 2^15: block 2^16 begins at 2^31, 2^17 at 2^32
  const std::vector<std::int32_t> blocks = {131073, 65535, 0, 65536, 131072, 65537, 131071};
  const EditTensors edit = [&](std::vector<TensorSpec>& specs) {
    spec_named(specs, "block_table").source = blocks;
    std::vector<std::int32_t> sorted = blocks;
    std::sort(sorted.begin(), sorted.end());
    std::vector<ElementRange> unused;
    std::int64_t end_of_last = 0;
    for (const std::int64_t block : sorted) {
      if (block > end_of_last) unused.push_back({end_of_last * kBlockElements, block * kBlockElements});
      end_of_last = block + 1;
    }
    for (const char* name : {"k", "v"}) {
      spec_named(specs, name).shape[0] = end_of_last;
      spec_named(specs, name).unused = unused;
    }
  };
  try {
    run_decode(c, edit);
  } catch (const OutOfMemory& error) {
    WARN("not tested: " << error.what());
  }
}

}  // namespace
}  // namespace inferometer::test
