// Configs with random damage: refused with a ConfigError or read, nothing else.
#include <random>
#include <string>

#include "tests/harness/sweep/config_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

std::string damaged(std::string text, std::mt19937& random) {
  static const std::string pool = "{}[]\",:0123456789-+.eEtfn \\u'()<>=!%*/\x80\xff";
  const int edits = 1 + static_cast<int>(random() % 3);
  for (int i = 0; i < edits && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    const char letter = random() % 4 == 0 ? static_cast<char>(random()) : pool[random() % pool.size()];
    switch (random() % 4) {
      case 0: text[at] = letter; break;
      case 1: text.insert(at, 1, letter); break;
      case 2: text.erase(at, 1 + random() % 8); break;
      default: text.insert(at, text.substr(random() % text.size(), random() % 16)); break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("sweep: 5,000 damaged configs and options are refused or read", "[sweep][mutation]") {
  const std::string valid = test::config_with(
      R"("baseline": {"variant": "cpu.naive", "problem": {"causal": false}}, "fixed": {"batch": 1, "dtype": "f16"},
         "axes": {"seq_len": [16, 32], "causal": [false, true]}, "zip": [{"q_heads": [8, 4], "kv_heads": [2, 1]}],
         "where": ["seq_len * 2 <= 64 or not (variant == 'cpu.flash') and q_heads % 3 in [1, 2]"],
         "measure": {"cache": "cold", "min_samples": 3}, "limits": {"row_seconds": 1.5, "device_bytes": null})");
  REQUIRE(test::refusal(valid) == "accepted");
  constexpr unsigned kSeed = 20261129;
  std::mt19937 random(kSeed);
  int accepted = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = valid;
    SweepOptions options;
    switch (i % 3) {
      case 0: text = damaged(valid, random); break;
      case 1: options.filter = damaged("seq_len >= 16 and variant != 'cpu.naive'", random); break;
      default: options.set = {damaged("seq_len=[16,32]", random)}; break;
    }
    INFO("seed " << kSeed << ", number " << i << ": " << text << options.filter
                 << (options.set.empty() ? "" : options.set.front()));
    std::string other = "nothing";
    try {
      accepted += parse_sweep(text, "c.json", options).rows.empty() ? 0 : 1;
    } catch (const ConfigError& error) {
      CHECK_FALSE(std::string(error.what()).empty());
    } catch (const std::exception& error) {
      other = error.what();
    }
    CHECK(other == "nothing");
  }
  CHECK(accepted > 50);  // some damage is harmless: the way to rows is exercised too
  CHECK(accepted < 4000);
}
