// The front page's figures of quantisation are those of the results file.
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "harness/results/terminal.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("published results: the front page gives each method's error by bits and groups as the file does",
          "[results][weight_quantization]") {
  const std::string root = INFEROMETER_SOURCE_DIR;
  const std::string front_page = read_text(root + "/README.md");
  const Json results = read_json(root + "/results/intel_xeon/quantization_quality.json");
  std::map<std::string, double> percent;
  const auto key = [](const std::string& variant, std::int64_t bits, std::int64_t group_size) {
    return variant + " " + std::to_string(bits) + " " + std::to_string(group_size);
  };
  for (const Json& row : results.at("rows")) {
    const Json& problem = row.at("problem");
    if (problem.at("source") != "synthetic") continue;
    percent[key(row.at("variant"), problem.at("bits"), problem.at("group_size"))] =
        100 * row.at("metrics").at("output_rel_error").get<double>();
  }
  for (const std::int64_t bits : {8, 4, 3}) {
    std::string line = std::to_string(bits) + " bits:";
    for (const auto& [name, variant] : {std::pair("RTN", "cpu.rtn"), {"AWQ", "cpu.awq"}, {"GPTQ", "cpu.gptq"}}) {
      line += std::string(line.ends_with(':') ? " " : ", ") + name;
      for (const std::int64_t group_size : {32, 64, 128})
        line += (group_size == 32 ? " " : " / ") +
                formatted(bits == 8 ? "%.2f" : "%.1f", percent.at(key(variant, bits, group_size)));
    }
    INFO(line);
    CHECK(front_page.find(line) != std::string::npos);
  }
}
