// The files under results/: valid, without a failed row, of a committed program, and shown as they are.
#include <algorithm>
#include <filesystem>
#include <vector>

#include "harness/results/markdown.hpp"
#include "harness/results/summary.hpp"
#include "tests/harness/results/schema_check.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

namespace fs = std::filesystem;

const fs::path kResults = fs::path(INFEROMETER_SOURCE_DIR) / "results";

// results/<device>/*.json, sorted, by their path below results/.
std::vector<NamedResults> published() {
  std::vector<NamedResults> files;
  for (const auto& entry : fs::recursive_directory_iterator(kResults))
    if (entry.path().extension() == ".json" && entry.path().parent_path() != kResults)
      files.push_back(
          {entry.path().lexically_relative(kResults).generic_string(), Json::parse(read_text(entry.path().string()))});
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

}  // namespace

TEST_CASE("published results: each file is valid, of a clean program, every row ok, unsupported or without a figure",
          "[results]") {
  const std::vector<NamedResults> files = published();
  REQUIRE_FALSE(files.empty());
  for (const NamedResults& file : files) {
    INFO(file.path);
    CHECK(schema_complaint(file.json) == "");
    CHECK(file.json.at("environment").at("program").at("git_dirty") == false);
    for (const Json& row : file.json.at("rows")) {
      const std::string status = text_from(row.at("status"));
      INFO(row.dump());
      if (status == "incorrect") {  // the front page shows it, as the next case asks
        CHECK(row.at("timing").is_null());
      } else {
        CHECK((status == "ok" || status == "unsupported"));
      }
    }
  }
}

TEST_CASE("published results: the front page gives each answer as the files do", "[results]") {
  const std::string front_page = read_text(std::string(INFEROMETER_SOURCE_DIR) + "/README.md");
  const auto is_cpu = [](const std::string& line) { return line.starts_with("cpu."); };
  for (const NamedResults& file : published()) {
    const std::vector<std::string> lines = summary_lines(file.json);
    const bool simulated = std::all_of(lines.begin(), lines.end(), is_cpu);
    for (const std::string& line : lines) {
      if (is_cpu(line) && !simulated) continue;  // beside a GPU, a CPU is no answer
      INFO(line);
      CHECK(front_page.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("published results: README.md is what report makes of the files", "[results]") {
  CHECK(markdown_report(published()) == read_text((kResults / "README.md").string()));
}
