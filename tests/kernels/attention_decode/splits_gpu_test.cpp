// Parts of a sequence and how they merge.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu]";

std::vector<std::byte> part_of(const std::vector<std::byte>& all, std::size_t index, std::size_t count) {
  const std::size_t size = all.size() / count;
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(index * size);
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

TEMPLATE_TEST_CASE_SIG("decode kernels: any number of splits gives the same answer, empty ones too", kTags,
                       ((std::int64_t head_dim, std::int64_t block_size), head_dim, block_size), (64, 0), (64, 16),
                       (128, 0), (128, 16)) {
  const auto step = static_cast<std::int64_t>(sanitizer_step(6));
  for (std::int64_t splits = 1; splits <= 257 / 16 + 1 + 3; splits += step)
    for (const DecodeShape& c : in_every_format({.contexts = {257},
                                .kv_heads = 1,
                                .head_dim = head_dim,
                                .block_size = block_size,
                                .kv_group_size = 64,
                                .splits = splits}))
      run_decode(c);
}

TEMPLATE_TEST_CASE_SIG("decode kernels: a long context is split by choice and by hand", kTags,
                       ((std::int64_t block_size), block_size), 0, 64) {
  for (const std::int64_t splits : {0, 1, 7, 300, 4096})
    run_decode({.contexts = {9000, 4097},
                .q_len = 2,
                .q_heads = 8,
                .kv_heads = 2,
                .head_dim = 128,
                .block_size = block_size,
                .splits = splits});
}

void check_repeats(const std::vector<std::int64_t>& contexts) {
  for (const DecodeShape& c : in_every_format({.contexts = contexts,
                              .q_heads = 32,
                              .kv_heads = 8,
                              .head_dim = 128,
                              .block_size = 16,
                              .kv_group_size = 64})) {
    const VariantRun first = run_decode(c);
    for (int i = 0; i < 2; ++i) {
      const VariantRun again = run_decode(c);
      INFO(describe(c));
      CHECK(again.raw.at("o") == first.raw.at("o"));
      CHECK(again.raw.at("lse") == first.raw.at("lse"));
    }
  }
}

TEST_CASE("decode kernels: a launch repeats to the bit, whichever block comes last", kTags) { check_repeats({2000}); }

TEST_CASE("decode kernels: a launch of several sequences repeats to the bit, whichever block comes last", kTags) {
  check_repeats({3000, 2000, 1000});
}

void check_alone_as_in_batch(const DecodeShape& batch) {
  const std::size_t count = batch.contexts.size();
  const VariantRun together = run_decode(batch, fill_tokens(batch, random_contents(batch)));
  const std::span<const float> o(together.outputs.at("o"));
  const std::span<const float> lse(together.outputs.at("lse"));
  for (std::size_t b = 0; b < count; ++b) {
    INFO(describe(batch) << " sequence " << b);
    if (batch.contexts[b] == 0) {
      const auto o_of_b = o.subspan(b * (o.size() / count), o.size() / count);
      const auto lse_of_b = lse.subspan(b * (lse.size() / count), lse.size() / count);
      CHECK(std::all_of(o_of_b.begin(), o_of_b.end(), [](float x) { return x == 0.0F; }));
      CHECK(std::all_of(lse_of_b.begin(), lse_of_b.end(), [](float x) { return std::isinf(x) && x < 0; }));
      continue;
    }
    DecodeShape single = batch;
    single.contexts = {batch.contexts[b]};
    const auto as_sequence_b = [b](const TokenValue& value) {
      return [b, value](std::int64_t, std::int64_t token, std::int64_t element) {
        return value(static_cast<std::int64_t>(b), token, element);
      };
    };
    TokenContents contents = random_contents(single);
    contents = {.value = as_sequence_b(contents.value),
                .code = as_sequence_b(contents.code),
                .scale = as_sequence_b(contents.scale)};
    const VariantRun alone = run_decode(single, fill_tokens(single, contents));
    CHECK(alone.raw.at("o") == part_of(together.raw.at("o"), b, count));
    CHECK(alone.raw.at("lse") == part_of(together.raw.at("lse"), b, count));
  }
}

TEMPLATE_TEST_CASE_SIG("decode kernels: with given splits a sequence does not feel its neighbours", kTags,
                       ((std::int64_t block_size, std::int64_t splits, std::int64_t window), block_size, splits,
                        window),
                       (0, 1, -1), (0, 1, 50), (0, 3, -1), (0, 3, 50), (16, 1, -1), (16, 1, 50), (16, 3, -1),
                       (16, 3, 50)) {
  for (const DecodeShape& c : in_every_format({.contexts = {7, 0, 300},
                              .q_heads = 8,
                              .block_size = block_size,
                              .kv_group_size = 32,
                              .window_left = window,
                              .splits = splits}))
    check_alone_as_in_batch(c);
}

}  // namespace
}  // namespace inferometer::test
