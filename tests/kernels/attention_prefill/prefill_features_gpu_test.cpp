// The CUDA prefill variants beyond equal sequences of dense tensors: ragged batches, paged caches, strides, windows,
// soft caps, values of another width.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/measure/device.hpp"
#include "tests/kernels/attention_prefill/prefill_problem.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

using Problem = AttentionPrefillProblem;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr auto kTags = "[attention][prefill][gpu]";

TEST_CASE("prefill: sequences without keys give 0 and -infinity, those without queries give nothing", kTags) {
  for (const std::int64_t block_size : {0, 16}) {
    const Problem p =
        with_lengths({.q_heads = 2, .block_size = block_size, .causal = true}, {1, 200, 0, 1, 130}, {7, 0, 5, 300, 2});
    for_each_prefill(p, 1, {}, [&](const std::string&, const VariantRun& run) {
      CHECK(run.check.passed);
      const std::vector<float> empty = answer_of(run, p, 1);
      constexpr std::size_t kOutputs = 25600;  // 200 queries of 2 heads of 64
      for (std::size_t i = 0; i < kOutputs; ++i) REQUIRE(empty[i] == 0.0F);
      for (std::size_t i = kOutputs; i < empty.size(); ++i) REQUIRE(empty[i] == -kInfinity);
    });
    for (const bool causal : {false, true})
      check_prefill({.q_heads = 2, .q_len = 3, .kv_len = 0, .block_size = block_size, .causal = causal});
  }
}

TEST_CASE("prefill: a sequence of a ragged batch gets the bits that it gets alone", kTags) {
  for (const std::int64_t block_size : {0, 16})
    for (const bool causal : {false, true}) {
      const Problem p =
          with_lengths({.q_heads = 4, .kv_heads = 2, .head_dim = 128, .block_size = block_size, .causal = causal},
                       {1, 300, 0, 64, 129, 257}, {7, 300, 3, 0, 1000, 200});
      const EditTensors random = fill_prefill(p, random_prefill_value, kNan);
      for_each_prefill(p, 1, random, [&](const std::string& variant, const VariantRun& together) {
        CHECK(together.check.passed);
        for (std::int64_t b = 0; b < p.batch; ++b) {
          if (p.q_len_of(b) == 0) continue;
          CAPTURE(b);
          const Problem alone = with_lengths(p, {p.q_len_of(b)}, {p.kv_len_of(b)});
          const PrefillValue of_this = [b](char tensor, std::int64_t, std::int64_t token, std::int64_t element) {
            return random_prefill_value(tensor, b, token, element);
          };
          const VariantRun one = run_prefill(variant, alone, 1, fill_prefill(alone, of_this, kNan));
          CHECK(answer_of(one, alone, 0) == answer_of(together, p, b));
        }
      });
    }
}

TEST_CASE("prefill: equal lengths give the same bits ragged and not", kTags) {
  for (const std::int64_t head_dim : {64, 128}) {
    const Problem equal{
        .batch = 3, .q_heads = 3, .q_len = 170, .kv_len = 210, .head_dim = head_dim, .window_left = 60, .causal = true};
    const Problem ragged = with_lengths(equal, {170, 170, 170}, {210, 210, 210});
    check_same(equal, fill_prefill(equal, random_prefill_value, kNan), ragged,
               fill_prefill(ragged, random_prefill_value, kNan));
  }
}

TEST_CASE("prefill: many short sequences are right", kTags) {
  std::vector<std::int64_t> q_lens;
  std::vector<std::int64_t> kv_lens;
  for (std::int64_t b = 0; b < 300; ++b) {
    q_lens.push_back(b % 7 == 0 ? 0 : b * 37 % 130);
    kv_lens.push_back(b % 11 == 0 ? 0 : b * 53 % 150);
  }
  for (const std::int64_t block_size : {0, 32})
    check_prefill(
        with_lengths({.q_heads = 2, .head_dim = 128, .block_size = block_size, .causal = true}, q_lens, kv_lens));
}

TEMPLATE_TEST_CASE_SIG("prefill: a shuffled paged cache gives the bits of contiguous keys and values", kTags,
                       ((std::int64_t page), page), 1, 3, 16, 64, 128, 256, 512) {
  for (const std::int64_t length : {std::int64_t{1}, page - 1, page, page + 1, std::int64_t{1000}}) {
    if (length == 0) continue;
    // With strides that tell nothing new, a contiguous problem takes the way of those that need more.
    Problem contiguous = with_lengths({.q_heads = 2, .kv_heads = 2, .causal = true}, {150, 3}, {length, 5});
    Problem paged = contiguous;
    paged.block_size = page;
    check_same(contiguous, fill_prefill(contiguous, random_prefill_value, kNan), paged,
               fill_prefill(paged, random_prefill_value, kNan));
  }
}

TEMPLATE_TEST_CASE_SIG("prefill: chunks of a prompt against a paged prefix are right", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 96, 128, 192, 256) {
  for (const std::int64_t page : {1, 16, 48, 64, 256})
    check_prefill({.batch = 2,
                   .q_heads = 4,
                   .kv_heads = 2,
                   .q_len = 190,
                   .kv_len = 1000,
                   .head_dim = head_dim,
                   .block_size = page,
                   .causal = true});
}

TEMPLATE_TEST_CASE_SIG("prefill: rows of K and V may lie at strides of their own", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 80, 128) {
  for (const std::int64_t block_size : {0, 1, 5, 16}) {
    const Problem dense = with_lengths({.q_heads = 4, .kv_heads = 2, .head_dim = head_dim, .block_size = block_size},
                                       {100, 1, 70}, {33, 100, 0});
    for (const auto& [k_excess, v_excess] : {std::pair{8, 0}, std::pair{0, 8}, std::pair{64, 200}}) {
      Problem apart = dense;
      apart.k_row_stride = 2 * head_dim + k_excess;
      apart.v_row_stride = 2 * head_dim + v_excess;
      check_same(dense, fill_prefill(dense, random_prefill_value, 0), apart,
                 fill_prefill(apart, random_prefill_value, kNan));
    }
  }
}

TEST_CASE("prefill: NaN and infinity in unused slots, blocks and padding change no bit", kTags) {
  Problem p = with_lengths({.q_heads = 2, .block_size = 4, .k_row_stride = 72}, {5, 130, 40}, {13, 64, 130});
  for (const std::int64_t block_size : {4, 64, 256}) {
    p.block_size = block_size;
    for (const float garbage : {kNan, kInfinity, -kInfinity, 65504.0F})
      check_same(p, fill_prefill(p, random_prefill_value, 0.25F), p, fill_prefill(p, random_prefill_value, garbage));
  }
}

TEST_CASE("prefill: entries of the block table past a sequence's end are not followed", kTags) {
  for (const std::int64_t block_size : {1, 16, 64}) {
    const Problem p =
        with_lengths({.q_heads = 2, .block_size = block_size, .causal = true}, {150, 1, 3, 33}, {300, 1, 0, 33});
    for (const std::int32_t stale : thinned({std::numeric_limits<std::int32_t>::max(), 1 << 20}, 2))
      check_same(p, {}, p, [stale](std::vector<TensorSpec>& specs) {
        auto& table = std::get<std::vector<std::int32_t>>(tensor_named(specs, "block_table").source);
        std::replace(table.begin(), table.end(), -1, stale);
      });
  }
}

TEST_CASE("prefill: a window reaches from the query's own key so many back, both included", kTags) {
  const Problem one{.q_len = 1, .kv_len = 256, .window_left = 32, .causal = true};
  for_each_prefill(one, 1, fill_prefill(one, numbered_values(0, 0), 0), [](const std::string&, const VariantRun& run) {
    CHECK(run.outputs.at("lse")[0] == Approx(std::log(33.0)));  // keys 223-255
    for (const float o : run.outputs.at("o")) REQUIRE(o == 239.0F);
  });
  const Problem many{.q_len = 200, .kv_len = 203, .window_left = 4, .causal = true};
  for_each_prefill(many, 1, fill_prefill(many, numbered_values(0, 0), 0),
                   [](const std::string&, const VariantRun& run) {
                     for (std::size_t i = 1; i < 200; ++i) {  // keys i - 1, ..., i + 3
                       REQUIRE(run.outputs.at("o")[i * 64] == static_cast<float>(i) + 1.0F);
                       REQUIRE(run.outputs.at("lse")[i] == Approx(std::log(5.0)));
                     }
                     CHECK(run.outputs.at("lse")[0] == Approx(std::log(4.0)));
                   });
}

TEST_CASE("prefill: a window as long as the sequence is none, one of 0 gives the query's own value", kTags) {
  for (const std::int64_t head_dim : {64, 128, 256}) {
    const Problem all{
        .batch = 2, .q_heads = 2, .kv_heads = 2, .q_len = 300, .kv_len = 300, .head_dim = head_dim, .causal = true};
    const EditTensors random = fill_prefill(all, random_prefill_value, kNan);
    Problem windowed = all;
    windowed.window_left = 299;
    check_same(all, random, windowed, random);
    windowed.window_left = 0;
    for_each_prefill(windowed, 1, random, [&](const std::string&, const VariantRun& run) {
      const std::int64_t row = 2 * head_dim;
      for (std::int64_t i = 0; i < 600; ++i)
        for (std::int64_t e = 0; e < row; ++e)
          REQUIRE(run.outputs.at("o")[static_cast<std::size_t>(i * row + e)] ==
                  random_prefill_value('v', i / 300, i % 300, e));
    });
  }
}

TEMPLATE_TEST_CASE_SIG("prefill: every window is right, at every tile's edge", kTags,
                       ((std::int64_t head_dim, std::int64_t q_len, std::int64_t kv_len), head_dim, q_len, kv_len),
                       (64, 450, 700), (64, 300, 300), (64, 200, 130), (128, 450, 700), (128, 300, 300),
                       (128, 200, 130), (256, 450, 700), (256, 300, 300), (256, 200, 130)) {
  for (const std::int64_t window :
       thinned<std::int64_t>({0, 1, 15, 16, 31, 47, 48, 63, 64, 65, 79, 80, 127, 128, 129, 175, 176, 400, 699}, 9))
    check_prefill({.q_len = q_len, .kv_len = kv_len, .head_dim = head_dim, .window_left = window, .causal = true});
}

TEST_CASE("prefill: with a soft cap scores become c tanh(s / c)", kTags) {
  // Two keys: scores 8 and -8 (64 elements of 8 and 1/8, over 8), V 1 and 0.
  const PrefillValue two_keys = [](char tensor, std::int64_t, std::int64_t token, std::int64_t) {
    if (tensor == 'q') return 8.0F;
    if (tensor == 'k') return token == 0 ? 0.125F : -0.125F;
    return token == 0 ? 1.0F : 0.0F;
  };
  Problem p{.kv_len = 2, .soft_cap = 2};
  const double capped = 2 * std::tanh(8.0 / 2);
  for_each_prefill(p, 1, fill_prefill(p, two_keys, 0), [&](const std::string&, const VariantRun& run) {
    // tanh.approx errs by 2^-11 of its result, O is rounded to f16.
    CHECK(run.outputs.at("lse")[0] == Approx(capped + std::log(1 + std::exp(-2 * capped))).epsilon(0x1p-10));
    CHECK(run.outputs.at("o")[0] == Approx(1 / (1 + std::exp(-2 * capped))).epsilon(0x1p-9));
  });
  p.soft_cap = 1e6;  // bends a score of 8 by 8^3 / (3e12)
  for_each_prefill(p, 1, fill_prefill(p, two_keys, 0), [&](const std::string&, const VariantRun& run) {
    CHECK(run.outputs.at("lse")[0] == Approx(8.0 + std::exp(-16.0)).epsilon(0x1p-10));
  });
}

TEMPLATE_TEST_CASE_SIG("prefill: every soft cap is right, with large logits too", kTags,
                       ((Dtype dtype, int stddev), dtype, stddev), (Dtype::f16, 1), (Dtype::f16, 20), (Dtype::bf16, 1),
                       (Dtype::bf16, 20)) {
  for (const double cap : thinned({0.5, 5.0, 30.0, 50.0}, 2))
    check_prefill(
        {.q_heads = 2, .q_len = 150, .kv_len = 300, .head_dim = 128, .soft_cap = cap, .causal = true, .dtype = dtype},
        1, [](std::vector<TensorSpec>& specs) {
          tensor_named(specs, "q").source = Normal{.stddev = static_cast<double>(stddev)};
        });
}

TEMPLATE_TEST_CASE_SIG("prefill: V may be narrower or wider than Q and K", kTags,
                       ((std::int64_t head_dim, std::int64_t v_head_dim, Dtype dtype), head_dim, v_head_dim, dtype),
                       (192, 128, Dtype::f16), (192, 128, Dtype::bf16), (64, 128, Dtype::f16), (64, 128, Dtype::bf16),
                       (128, 64, Dtype::f16), (128, 64, Dtype::bf16), (256, 8, Dtype::f16), (256, 8, Dtype::bf16),
                       (8, 256, Dtype::f16), (8, 256, Dtype::bf16), (96, 64, Dtype::f16), (96, 64, Dtype::bf16),
                       (72, 128, Dtype::f16), (72, 128, Dtype::bf16)) {
  for (const bool causal : {false, true})
    check_prefill({.batch = 2,
                   .q_heads = 4,
                   .kv_heads = 2,
                   .q_len = 190,
                   .kv_len = 300,
                   .head_dim = head_dim,
                   .v_head_dim = v_head_dim,
                   .causal = causal,
                   .dtype = dtype});
}

// The pool is widened to 2^32 elements and more of K and of V, 17 GB in all; only the blocks of one short sequence hold
// numbers, the rest NaN: a wrapped offset cannot go unseen.
TEST_CASE("prefill: block offsets past 2^31 and 2^32 elements are right", kTags) {
  constexpr std::int64_t kBlockSize = 16;
  const Problem p{.q_heads = 8,
                  .kv_heads = 8,
                  .q_len = 20,
                  .kv_len = 7 * kBlockSize - 3,
                  .head_dim = 256,
                  .block_size = kBlockSize};
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
    check_prefill(p, 1, edit);
  } catch (const OutOfMemory& error) {
    WARN("not tested: " << error.what());
  }
}

}  // namespace
}  // namespace inferometer::test
