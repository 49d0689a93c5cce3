// Where K and V lie: pages of any size in any order, free slots of any content, offsets past 32 bits.
#include <algorithm>
#include <limits>
#include <string>
#include <variant>

#include "harness/measure/device.hpp"
#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

TEST_CASE("decode kernels: what free slots hold changes no bit of the output", kTags) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  struct Garbage {
    float element;  // or scale
    float code;
  };
  for (const DecodeShape& problem : {
           DecodeShape{.contexts = {13}, .kv_heads = 1, .block_size = 4},
           DecodeShape{.contexts = {13, 0, 29}, .q_len = 2, .block_size = 16},
           DecodeShape{.contexts = {32, 64, 96, 48, 128}, .kv_heads = 1},
           DecodeShape{.contexts = {1, 127, 128}, .q_heads = 12, .kv_heads = 1, .head_dim = 128, .kv_group_size = 32},
       })
    for (const DecodeShape& c : in_every_format(problem)) {
      TokenContents contents = random_contents(c);
      contents.unused = 0.25F;
      const VariantRun clean = run_decode(c, fill_tokens(c, contents));
      for (const Garbage garbage :
           {Garbage{kNan, 255}, Garbage{kInfinity, 127}, Garbage{-kInfinity, 128}, Garbage{65504, 126}}) {
        contents.unused = garbage.element;
        contents.unused_code = garbage.code;
        const VariantRun run = run_decode(c, fill_tokens(c, contents));
        INFO(describe(c) << " unused slots " << garbage.element << " codes " << garbage.code);
        CHECK(run.raw.at("o") == clean.raw.at("o"));
        CHECK(run.raw.at("lse") == clean.raw.at("lse"));
      }
    }
}

TEST_CASE("decode kernels: entries of the block table past a sequence's end are not followed", kTags) {
  for (const std::int64_t block_size : thinned<std::int64_t>({1, 16, 64}, 2))
    for (const std::int64_t splits : {0, 1, 3})
      for (const DecodeShape& c :
           in_every_format({.contexts = {300, 1, 0, 33}, .q_len = 2, .block_size = block_size, .splits = splits})) {
        const VariantRun clean = run_decode(c);
        for (const std::int32_t stale : thinned({std::numeric_limits<std::int32_t>::max(), 1 << 20}, 2)) {
          const VariantRun run = run_decode(c, [stale](std::vector<TensorSpec>& specs) {
            auto& table = std::get<std::vector<std::int32_t>>(tensor_named(specs, "block_table").source);
            std::replace(table.begin(), table.end(), -1, stale);
          });
          INFO(describe(c) << " stale entries " << stale);
          CHECK(run.raw.at("o") == clean.raw.at("o"));
          CHECK(run.raw.at("lse") == clean.raw.at("lse"));
        }
      }
}

// The padding of rows holds NaN. A row of Q and one of O keep their own strides.
TEST_CASE("decode kernels: rows of K and V lie at strides of their own", kTags) {
  for (const std::int64_t head_dim : {64, 80, 128})
    for (const std::int64_t block_size : {0, 1, 5, 16})
      for (const std::string dtype : {"f16", "bf16"}) {
        DecodeShape c{.contexts = {100, 1, 33, 0, 64},
                      .q_len = 2,
                      .head_dim = head_dim,
                      .block_size = block_size,
                      .dtype = dtype};
        const auto fill = fill_tokens(c, random_value, 0.0F);
        const VariantRun dense = run_decode(c, fill);
        struct Strides {
          std::int64_t k, v;  // in excess of the heads
        };
        for (const Strides excess : {Strides{8, 0}, Strides{0, 8}, Strides{64, 200}}) {
          c.k_row_stride = 2 * head_dim + excess.k;
          c.v_row_stride = 2 * head_dim + excess.v;
          const VariantRun run = run_decode(c, fill_tokens(c, random_value, std::numeric_limits<float>::quiet_NaN()));
          INFO(describe(c));
          CHECK(run.raw.at("o") == dense.raw.at("o"));
          CHECK(run.raw.at("lse") == dense.raw.at("lse"));
        }
      }
}

TEST_CASE("decode kernels: a shuffled paged cache gives the bits of the contiguous one", kTags) {
  for (const std::int64_t page : thinned<std::int64_t>({1, 3, 16, 64, 128, 256, 512}, 3))
    for (const std::int64_t length : {std::int64_t{1}, page - 1, page, page + 1, std::int64_t{1000}}) {
      if (length == 0) continue;
      for (DecodeShape c : in_every_format({.contexts = {length, 5}, .kv_group_size = 32, .splits = 2})) {
        const VariantRun contiguous = run_decode(c, fill_tokens(c, random_contents(c)));
        c.block_size = page;
        const VariantRun paged = run_decode(c, fill_tokens(c, random_contents(c)));
        INFO(describe(c));
        CHECK(paged.raw.at("o") == contiguous.raw.at("o"));
        CHECK(paged.raw.at("lse") == contiguous.raw.at("lse"));
      }
    }
}

// The pool is widened to 2^32 elements and more of K and of V, 17 GB in all; only the blocks of one short sequence hold
// numbers, the rest NaN: a wrapped offset cannot go unseen.
TEST_CASE("decode kernels: block offsets past 2^31 and 2^32 elements are right", kTags) {
  constexpr std::int64_t kBlockSize = 16;
  const DecodeShape c{
      .contexts = {7 * kBlockSize - 3}, .q_heads = 8, .kv_heads = 8, .head_dim = 256, .block_size = kBlockSize};
  constexpr std::int64_t kBlockElements = kBlockSize * 8 * 256;  // 2^15: block 2^16 begins at 2^31, 2^17 at 2^32
  const std::vector<std::int32_t> blocks = {131073, 65535, 0, 65536, 131072, 65537, 131071};
  const EditTensors edit = [&](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "block_table").source = blocks;
    std::vector<std::int32_t> sorted = blocks;
    std::sort(sorted.begin(), sorted.end());
    std::vector<ElementRange> unused;
    std::int64_t end_of_last = 0;
    for (const std::int64_t block : sorted) {
      if (block > end_of_last) unused.push_back({end_of_last * kBlockElements, block * kBlockElements});
      end_of_last = block + 1;
    }
    for (const char* name : {"k", "v"}) {
      tensor_named(specs, name).shape[0] = end_of_last;
      tensor_named(specs, name).unused = unused;
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
