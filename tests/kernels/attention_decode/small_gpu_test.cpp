// Every way through the decode kernels on caches of a few hundred keys: what a run under compute-sanitizer has time
// for. `gpu_tests "[sanitizer]"` runs these alone.
#include <string>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu][sanitizer]";

void run_in_every_form(const DecodeShape& c) {
  run_decode(c);
  for (const DecodeShape& codes : in_every_code_and_group(c)) run_decode(codes);
}

// The parts of one sequence are a cluster where there are clusters (decode_plan_test.cpp).
TEMPLATE_TEST_CASE_SIG("decode kernels: parts of a few keys meet in a cluster", kTags,
                       ((std::int64_t head_dim, std::int64_t block_size), head_dim, block_size), (64, 0), (64, 16),
                       (128, 0), (128, 16), (256, 0), (256, 16)) {
  run_in_every_form({.contexts = {600}, .q_heads = 8, .kv_heads = 2, .head_dim = head_dim, .block_size = block_size});
}

TEST_CASE("decode kernels: parts of a few keys of several sequences meet in clusters", kTags) {
  run_in_every_form({.contexts = {600, 40, 0}, .q_len = 2, .q_heads = 8, .kv_heads = 2, .head_dim = 128});
}

TEST_CASE("decode kernels: parts of a few keys meet in global memory", kTags) {
  run_in_every_form({.contexts = {100}, .q_len = 3, .q_heads = 12, .head_dim = 128, .splits = 2});
}

TEST_CASE("decode kernels: parts of a few keys of several sequences meet in global memory", kTags) {
  run_in_every_form({.contexts = {100, 17, 0}, .head_dim = 128, .block_size = 16, .splits = 3});
}

TEMPLATE_TEST_CASE_SIG("decode kernels: a few keys in every head dimension and row tile", kTags,
                       ((std::int64_t head_dim), head_dim), 64, 96, 128, 192, 256) {
  for (const std::int64_t q_heads : {8, 24})
    run_in_every_form({.contexts = {17, 100, 1}, .q_heads = q_heads, .head_dim = head_dim, .block_size = 5});
}

TEST_CASE("decode kernels: a few keys under a window and a soft cap", kTags) {
  run_in_every_form({.contexts = {150, 3}, .q_len = 2, .block_size = 16, .window_left = 40, .soft_cap = 20});
}

}  // namespace
}  // namespace inferometer::test
