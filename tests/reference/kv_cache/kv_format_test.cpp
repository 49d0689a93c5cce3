// Which quantisations of a KV cache there are.
#include <string>

#include "harness/operator/fields.hpp"
#include "reference/kv_cache/layout.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// Field and sentence of the refusal.
std::string refusal(std::int64_t bits, const std::string& format, std::int64_t group, std::int64_t head_dim) {
  try {
    check_kv_quantization(bits, format, group, head_dim);
  } catch (const ProblemError& error) {
    return error.field() + ": " + error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("kv format: every width, format and group that divides the head is accepted", "[kv_cache]") {
  for (const std::int64_t group : {0, 32, 64, 128}) {
    CHECK(refusal(16, "integer", group, 128) == "accepted");
    CHECK(refusal(8, "integer", group, 128) == "accepted");
    CHECK(refusal(8, "fp8_e4m3", group, 256) == "accepted");
    CHECK(refusal(4, "integer", group, 256) == "accepted");
  }
  CHECK(refusal(4, "integer", 0, 80) == "accepted");
  CHECK(refusal(4, "integer", 32, 96) == "accepted");
}

TEST_CASE("kv format: all others are refused with what is allowed", "[kv_cache]") {
  CHECK(refusal(5, "integer", 0, 128) == "kv_bits: kv_bits must be 16, 8 or 4, got 5");
  CHECK(refusal(8, "fp8", 0, 128) == "kv_format: kv_format must be integer or fp8_e4m3, got 'fp8'");
  CHECK(refusal(4, "fp8_e4m3", 0, 128) == "kv_format: kv_format fp8_e4m3 needs kv_bits 8, got 4");
  CHECK(refusal(16, "fp8_e4m3", 0, 128) == "kv_format: kv_format fp8_e4m3 needs kv_bits 8, got 16");
  CHECK(refusal(8, "integer", 48, 96) ==
        "kv_group_size: kv_group_size must be 0 (the whole head), 32, 64 or 128, got 48");
  CHECK(refusal(8, "integer", 32, 80) == "kv_group_size: kv_group_size must divide head_dim (80), got 32");
  CHECK(refusal(4, "integer", 128, 64) == "kv_group_size: kv_group_size must divide head_dim (64), got 128");
}
