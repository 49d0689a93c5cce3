// What the CUDA prefill variants refuse, before any launch: these sentences need no GPU. A build without CUDA has only
// the variants' names.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// Empty: accepted.
std::string refusal(const std::string& variant, const AttentionPrefillProblem& p) {
  return find_variant("attention_prefill", variant)->unsupported(&p).value_or("");
}

bool built() { return find_variant("attention_prefill", "cuda.flash_sm90")->not_built.empty(); }

void refuses(const std::string& variant, const AttentionPrefillProblem& p,
             std::initializer_list<std::string_view> words) {
  const std::string sentence = refusal(variant, p);
  CAPTURE(variant, sentence);
  for (const std::string_view word : words) CHECK(sentence.find(word) != std::string::npos);
}

const std::vector<std::string> kVariants = {"cuda.flash", "cuda.flash_sm80", "cuda.flash_sm90", "cuda.materialized"};
const std::vector<std::string> kFlash = {"cuda.flash", "cuda.flash_sm80", "cuda.flash_sm90"};

}  // namespace

TEST_CASE("prefill: types and lengths beyond the kernels are refused by every variant", "[attention][prefill]") {
  if (!built()) return;
  constexpr std::int64_t kLongest = std::int64_t{1} << 30;
  for (const std::string& variant : kVariants) {
    refuses(variant, {.dtype = Dtype::f32}, {"dtype must be f16 or bf16, got f32"});
    refuses(variant, {.q_len = kLongest + 1, .head_dim = 64, .dtype = Dtype::f16},
            {"q_len must be at most 1073741824, got 1073741825"});
    refuses(variant, {.kv_len = kLongest + 1, .head_dim = 64, .dtype = Dtype::f16},
            {"kv_len must be at most 1073741824, got 1073741825"});
    CHECK(refusal(variant, {.q_len = 1, .kv_len = kLongest, .head_dim = 64, .dtype = Dtype::f16}).empty());
  }
}

TEST_CASE("prefill: more tiles than a launch has thread blocks are refused", "[attention][prefill]") {
  if (!built()) return;
  for (const std::string& variant : kFlash) {
    refuses(variant, {.batch = 1 << 20, .q_len = 1 << 20, .head_dim = 64, .dtype = Dtype::f16},
            {"at most 2147483647", "1048576"});
    refuses(variant,
            {.q_heads = 1 << 20,
             .q_len = 1 << 20,
             .q_lens = {1 << 20},
             .kv_lens = {1},
             .head_dim = 64,
             .dtype = Dtype::f16},
            {"at most 2147483647", "1048576"});
    CHECK(refusal(variant, {.batch = 1 << 16, .q_len = 1 << 16, .head_dim = 64, .dtype = Dtype::f16}).empty());
  }
  refuses("cuda.materialized", {.batch = 1 << 20, .q_len = 1 << 20, .head_dim = 64, .dtype = Dtype::f16},
          {"batch * q_heads * q_len must be at most 2147483647"});
}

TEST_CASE("prefill: widths and strides that flash_sm90 has no tiles for are refused with those it has",
          "[attention][prefill][flash_sm90]") {
  if (!built()) return;
  for (const std::int64_t head_dim : {8, 32, 56, 72, 80, 104, 112, 136, 224, 248})
    refuses("cuda.flash_sm90", {.head_dim = head_dim, .dtype = Dtype::f16},
            {"head_dim must be 64, 96, 128, 192 or 256", "192 and 128", std::to_string(head_dim)});
  for (const std::int64_t v_head_dim : {64, 96, 120, 136, 256})
    refuses("cuda.flash_sm90", {.head_dim = 192, .v_head_dim = v_head_dim, .dtype = Dtype::f16},
            {"192 and 128", "got 192 and " + std::to_string(v_head_dim)});
  for (const std::int64_t head_dim : {64, 96, 128, 192, 256})
    CHECK(refusal("cuda.flash_sm90", {.head_dim = head_dim, .dtype = Dtype::bf16}).empty());
  CHECK(refusal("cuda.flash_sm90", {.head_dim = 192, .v_head_dim = 128, .dtype = Dtype::bf16}).empty());
  refuses("cuda.flash_sm90", {.head_dim = 64, .k_row_stride = 68, .dtype = Dtype::f16},
          {"k_row_stride must be a multiple of 8", "got 68"});
  refuses("cuda.flash_sm90", {.head_dim = 64, .v_row_stride = 68, .dtype = Dtype::f16},
          {"v_row_stride must be a multiple of 8", "got 68"});
}

TEST_CASE("prefill: what flash_sm90 refuses flash_sm80 does, up to heads of 256", "[attention][prefill]") {
  if (!built()) return;
  for (const char* variant : {"cuda.flash", "cuda.flash_sm80"}) {
    for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8)
      CHECK(refusal(variant, {.head_dim = head_dim, .v_head_dim = 264 - head_dim, .dtype = Dtype::f16}).empty());
    refuses(variant, {.head_dim = 264, .dtype = Dtype::f16}, {"head_dim must be a multiple of 8 up to 256, got 264"});
    refuses(variant, {.head_dim = 64, .v_head_dim = 100, .dtype = Dtype::f16}, {"v_head_dim", "got 100"});
  }
}

TEST_CASE("prefill: materialized attention refuses ragged, paged and empty caches", "[attention][prefill]") {
  if (!built()) return;
  refuses("cuda.materialized", {.batch = 2, .q_lens = {1, 1}, .kv_lens = {1, 1}, .head_dim = 64, .dtype = Dtype::f16},
          {"q_lens and kv_lens must be empty, got 2 lengths"});
  refuses("cuda.materialized", {.head_dim = 64, .block_size = 16, .dtype = Dtype::f16},
          {"block_size must be 0, got 16"});
  refuses("cuda.materialized", {.kv_len = 0, .head_dim = 64, .dtype = Dtype::f16},
          {"kv_len must be at least 1, got 0"});
}
