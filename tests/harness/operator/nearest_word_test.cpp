#include "harness/operator/nearest_word.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("nearest word: a slip of one or two letters is understood", "[nearest_word]") {
  const std::vector<std::string> words{"batch", "q_heads", "kv_heads", "head_dim", "causal", "dtype"};
  CHECK(nearest_word("bacth", words) == "batch");  // swapped
  CHECK(nearest_word("btch", words) == "batch");   // missing
  CHECK(nearest_word("kvheads", words) == "kv_heads");
  CHECK(nearest_word("head_dimm", words) == "head_dim");
  CHECK(nearest_word("CAUSAL", words) == "causal");
  CHECK(nearest_word("dype", words) == "dtype");
  CHECK(nearest_word("temperature", words).empty());
  CHECK(nearest_word("", words).empty());
  CHECK(nearest_word("batch", {}).empty());
}

TEST_CASE("nearest word: among equals the same first letter wins", "[nearest_word]") {
  CHECK(nearest_word("b16", {"f16", "bf16"}) == "bf16");
  CHECK(nearest_word("fp16", {"bf16", "f16"}) == "f16");
}

TEST_CASE("nearest word: a part of a longer name finds it", "[nearest_word]") {
  CHECK(nearest_word("flash", {"cpu.naive", "cuda.flash_sm80"}) == "cuda.flash_sm80");
  CHECK(nearest_word("cu", {"cpu.naive", "cuda.flash_sm80"}).empty());
}

TEST_CASE("nearest word: messages list what is allowed", "[nearest_word]") {
  CHECK(unknown_word("operator", "matmull", {"attention", "matmul"}) ==
        "unknown operator 'matmull', nearest is 'matmul'; allowed: attention, matmul");
  CHECK(unknown_word("operator", "zzz", {"matmul"}) == "unknown operator 'zzz'; allowed: matmul");
  CHECK(unknown_word("operator", "zzz", {}) == "unknown operator 'zzz'; there is none");
}

TEST_CASE("nearest word: what came is shown on one line and not at any length", "[nearest_word]") {
  CHECK(in_quotes("a\nb\x1b") == "'a\\x0ab\\x1b'");
  CHECK(printable(std::string(1000, 'x')) == std::string(200, 'x') + "...");
  CHECK(printable(std::string(199, 'x') + "\xc3\xa9") == std::string(199, 'x') + "...");  // not half an e with accent
  CHECK(nearest_word(std::string(10'000'000, 'x'), {"batch"}).empty());
}
