#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "harness/sweep/measure_settings.hpp"
#include "harness/sweep/sweep.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

std::string page() {
  std::ostringstream text;
  text << std::ifstream(std::string(INFEROMETER_SOURCE_DIR) + "/docs/config.md").rdbuf();
  return text.str();
}

// Between the fences of the first block of this language.
std::string block(const std::string& text, const std::string& language) {
  const std::string opening = "\n```" + language + "\n";
  const std::size_t begin = text.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::size_t first = begin + opening.size();
  return text.substr(first, text.find("\n```", first) - first);
}

}  // namespace

TEST_CASE("docs/config.md: its example is a config, and its conditions leave the rows it means", "[sweep][config]") {
  const SweepOptions no_globs{.variants = {"cpu.naive"}};  // without CUDA there is no other variant
  std::string example = block(page(), "json");
  const std::string baseline = R"("variant": "cuda.contiguous")";
  REQUIRE(example.find(baseline) != std::string::npos);
  example.replace(example.find(baseline), baseline.size(), R"("variant": "cpu.naive")");
  example.replace(example.find(", \"cuda.*\""), std::string(", \"cuda.*\"").size(), "");
  const Sweep sweep = parse_sweep(example, "docs/config.md", no_globs);
  CHECK(sweep.rows.size() == 3 * 2 * 2);  // models, block sizes, contexts; of the batches only 1
  for (const SweepRow& row : sweep.rows) CHECK_FALSE(row.baseline_id.empty());
}

TEST_CASE("docs/config.md: no key of a config is missing", "[sweep][config]") {
  const std::string text = page();
  std::vector<std::string> keys = measure_keys();
  for (const std::string& key : limit_keys()) keys.push_back(key);
  for (const char* key : {"schema", "name", "question", "operator", "variants", "baseline", "fixed", "axes", "zip",
                          "where", "measure", "limits"})
    keys.emplace_back(key);
  for (const std::string& key : keys) {
    INFO(key);
    CHECK(text.find("| `" + key + "` |") != std::string::npos);
  }
}
