// Which of flash_sm90's shapes a problem takes.
#include "kernels/attention_prefill/flash_sm90_choice.hpp"

#include <cstdint>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kSms = 132;
using Tiles = FlashSm90D128Tiles;

AttentionPrefillProblem of_length(std::int64_t batch, std::int64_t heads, std::int64_t length, bool causal) {
  return {.batch = batch, .q_heads = heads, .kv_heads = heads, .q_len = length, .kv_len = length, .causal = causal};
}
AttentionPrefillProblem chunk(std::int64_t batch, std::int64_t queries, std::int64_t keys) {
  return {.batch = batch, .q_heads = 32, .kv_heads = 8, .q_len = queries, .kv_len = keys, .causal = true};
}

TEST_CASE("flash_sm90: two teams at head_dim 64 for few keys, twice as many when causal",
          "[attention][prefill][flash_sm90]") {
  CHECK(flash_sm90_d64_takes_teams(of_length(16, 32, 1024, false)));
  CHECK_FALSE(flash_sm90_d64_takes_teams(of_length(16, 32, 1025, false)));
  CHECK(flash_sm90_d64_takes_teams(of_length(8, 32, 2048, true)));
  CHECK_FALSE(flash_sm90_d64_takes_teams(of_length(8, 32, 2049, true)));
}

TEST_CASE("flash_sm90: tiles of head_dim 128 by the number of keys", "[attention][prefill][flash_sm90]") {
  for (const bool causal : {false, true}) {
    CHECK(flash_sm90_d128_tiles(of_length(16, 16, 1024, causal), kSms) == Tiles::short_tiles);
    CHECK(flash_sm90_d128_tiles(of_length(2, 16, 8192, causal), kSms) == Tiles::long_tiles);
  }
  CHECK(flash_sm90_d128_tiles(of_length(8, 16, 2048, false), kSms) == Tiles::long_tiles);
  CHECK(flash_sm90_d128_tiles(of_length(8, 16, 2048, true), kSms) == Tiles::short_tiles);
  CHECK(flash_sm90_d128_tiles(of_length(4, 16, 4096, true), kSms) == Tiles::long_tiles);
}

TEST_CASE("flash_sm90: short tiles of head_dim 128 where long ones leave SMs idle",
          "[attention][prefill][flash_sm90]") {
  CHECK(flash_sm90_d128_tiles(chunk(1, 512, 8192), kSms) == Tiles::short_tiles);
  CHECK(flash_sm90_d128_tiles(chunk(1, 2048, 32768), kSms) == Tiles::short_tiles);
  CHECK(flash_sm90_d128_tiles(chunk(4, 2048, 8192), kSms) == Tiles::long_tiles);
  CHECK(flash_sm90_d128_tiles(of_length(1, 64, 8192, true), kSms) == Tiles::long_tiles);
  AttentionPrefillProblem ragged = chunk(1, 512, 8192);
  ragged.q_lens = {512};
  ragged.kv_lens = {8192};
  CHECK(flash_sm90_d128_tiles(ragged, kSms) == Tiles::long_tiles);  // the lengths of others are not known here
}

TEST_CASE("flash_sm90: paged caches of head_dim 128 by their blocks", "[attention][prefill][flash_sm90]") {
  AttentionPrefillProblem paged = chunk(4, 2048, 8192);
  for (const std::int64_t size : {8, 16, 24, 64, 96, 256}) {
    paged.block_size = size;
    CHECK(flash_sm90_d128_tiles(paged, kSms) == Tiles::paged);
  }
  for (const std::int64_t size : {1, 12, 100}) {  // not of whole groups of 8 tokens
    paged.block_size = size;
    CHECK(flash_sm90_d128_tiles(paged, kSms) == Tiles::short_tiles);
  }
}

}  // namespace
}  // namespace inferometer
