// Parts of a sequence and how they merge.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

std::vector<std::byte> part_of(const std::vector<std::byte>& all, std::size_t index, std::size_t count) {
  const std::size_t size = all.size() / count;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

TEST_CASE("decode kernels: any number of splits gives the same answer, empty ones too", kTags) {
  for (const std::int64_t head_dim : {64, 128})
    for (const std::int64_t block_size : {0, 16})
      for (std::int64_t splits = 1; splits <= 257 / 16 + 1 + 3; ++splits)
        run_decode({.contexts = {257}, .head_dim = head_dim, .block_size = block_size, .splits = splits});
}

TEST_CASE("decode kernels: a long context is split by choice and by hand", kTags) {
  for (const std::int64_t splits : {0, 1, 7, 300, 4096})
    for (const std::int64_t block_size : {0, 64})
      run_decode({.contexts = {9000, 4097},
                  .q_len = 2,
                  .q_heads = 8,
                  .kv_heads = 2,
                  .head_dim = 128,
                  .block_size = block_size,
                  .splits = splits});
}

TEST_CASE("decode kernels: a launch repeats to the bit, whichever block comes last", kTags) {
  const DecodeCase c{.contexts = {3000, 2000, 1000}, .q_heads = 32, .kv_heads = 8, .head_dim = 128, .block_size = 16};
  const VariantRun first = run_decode(c);
  for (int i = 0; i < 5; ++i) {
    const VariantRun again = run_decode(c);
    CHECK(again.raw.at("o") == first.raw.at("o"));
    CHECK(again.raw.at("lse") == first.raw.at("lse"));
  }
}

TEST_CASE("decode kernels: with given splits a sequence does not feel its neighbours", kTags) {
  for (const std::int64_t block_size : {0, 16})
    for (const std::int64_t splits : {1, 3}) {
      DecodeCase batch{
          .contexts = {7, 0, 300}, .q_heads = 8, .kv_heads = 2, .block_size = block_size, .splits = splits};
      const VariantRun together = run_decode(batch, fill_tokens(batch, random_value, 0.0F));
      for (const std::size_t alone : {std::size_t{0}, std::size_t{2}}) {
        DecodeCase single = batch;
        single.contexts = {batch.contexts[alone]};
        const auto same_sequence = [=](std::int64_t, std::int64_t token, std::int64_t element) {
          return random_value(static_cast<std::int64_t>(alone), token, element);
        };
        const VariantRun run = run_decode(single, fill_tokens(single, same_sequence, 0.0F));
        INFO(describe(single));
        CHECK(run.raw.at("o") == part_of(together.raw.at("o"), alone, 3));
        CHECK(run.raw.at("lse") == part_of(together.raw.at("lse"), alone, 3));
      }
      const std::span<const float> o(together.outputs.at("o"));
      const std::span<const float> lse(together.outputs.at("lse"));
      const auto empty_o = o.subspan(o.size() / 3, o.size() / 3);
      const auto empty_lse = lse.subspan(lse.size() / 3, lse.size() / 3);
      CHECK(std::all_of(empty_o.begin(), empty_o.end(), [](float x) { return x == 0.0F; }));
      CHECK(std::all_of(empty_lse.begin(), empty_lse.end(), [](float x) { return std::isinf(x) && x < 0; }));
    }
}

}  // namespace
}  // namespace inferometer::test
