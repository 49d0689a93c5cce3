#include "harness/run/ncu_log.hpp"

#include <string>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// In the form in which Nsight Compute 2025 writes it with --csv --page raw --print-units base.
const std::string kHead =
    "==PROF== Connected to process 4711 (/usr/bin/inferometer)\n"
    "==PROF== Profiling \"split\" - 0: 0%....50%....100% - 2 passes\n"
    "\"ID\",\"Process ID\",\"Process Name\",\"Host Name\",\"Kernel Name\",\"Context\",\"Stream\",\"Block Size\","
    "\"Grid Size\",\"Device\",\"CC\",\"dram__bytes.sum\",\"gpu__time_duration.sum\","
    "\"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed\","
    "\"sm__warps_active.avg.pct_of_peak_sustained_active\"\n";
const std::string kUnits = "\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"\",\"byte\",\"nsecond\",\"%\",\"%\"\n";

std::string kernel_line(const std::string& name, const std::string& numbers) {
  return "\"0\",\"4711\",\"inferometer\",\"localhost\",\"" + name +
         "\",\"1\",\"7\",\"(128, 1, 1)\",\"(132, 1, 1)\",\"0\",\"9.0\"," + numbers + "\n";
}

const std::string kLine = kernel_line("split", R"("1,048,576","12,032","41.25","12.5")");

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("ncu log: the table's kernels are read by the names of its columns, in base units", "[run][profile]") {
  const std::string merge = kernel_line("void merge<float, \"\"4\"\">(int, int)", R"("2048","1000","0","100.00")");
  const auto kernels = read_ncu_log(kHead + kUnits + kLine + merge + "==PROF== Disconnected from process 4711\n");
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].kernel == "split");
  CHECK(kernels[0].sm == 90);
  CHECK(kernels[0].dram_bytes == 1048576);
  CHECK(kernels[0].time_ns == 12032);
  CHECK(kernels[0].tensor_pipe_ratio == Approx(0.4125));
  CHECK(kernels[0].occupancy_ratio == Approx(0.125));
  CHECK(kernels[1].kernel == "void merge<float, \"4\">(int, int)");
  CHECK(kernels[1].occupancy_ratio == Approx(1));
}

TEST_CASE("ncu log: units that are not the base ones are converted, not trusted", "[run][profile]") {
  const std::string units = replaced(replaced(kUnits, "byte", "Mbyte"), "nsecond", "us");
  const auto kernels = read_ncu_log(kHead + units + kernel_line("split", R"("1.5","12.25","41","12")"));
  CHECK(kernels.front().dram_bytes == Approx(1.5e6));
  CHECK(kernels.front().time_ns == Approx(12250));
}

TEST_CASE("ncu log: a table from a machine that ends lines with a carriage return reads the same", "[run][profile]") {
  std::string log = kHead + kUnits + kLine;
  for (std::size_t at = 0; (at = log.find('\n', at)) != std::string::npos; at += 2) log.insert(at, "\r");
  CHECK(read_ncu_log(log).front().occupancy_ratio == Approx(0.125));
}

TEST_CASE("ncu log: what is no table of kernels is refused by its fault", "[run][profile]") {
  struct Bad {
    std::string log;
    std::string sentence;
  };
  const auto number = [](const std::string& text) {
    return kHead + kUnits + kernel_line("split", "\"" + text + R"(","12032","41.25","12.5")");
  };
  const std::string not_a_number = "dram__bytes.sum of split must be a number, it is '";
  const std::vector<Bad> bad{
      {"", "it counted no kernel"},
      {"==WARNING== No kernels were profiled.\n",
       "it counted no kernel; it says ==WARNING== No kernels were profiled."},
      {kHead, "it counted no kernel"},
      {kHead + kUnits, "it counted no kernel"},
      {kHead + kLine + kLine, "the line below the names must hold units"},
      {replaced(kHead, "dram__bytes.sum", "dram__bytes_read.sum") + kUnits + kLine, "it has no column dram__bytes.sum"},
      {kHead + replaced(kUnits, "byte", "sector") + kLine, "dram__bytes.sum is in 'sector', which is no unit of it"},
      {kHead + replaced(kUnits, "byte", "%") + kLine, "dram__bytes.sum is in '%', which is no unit of it"},
      {kHead + kUnits + replaced(kLine, "9.0", "Hopper"), "CC must be like 9.0, it is 'Hopper'"},
      {kHead + kUnits + kLine + "\"1\",\"4711\"\n", "a line has 2 fields, the table has 15"},
      {kHead + kUnits + kLine.substr(0, kLine.size() - 2), "a line ends within quotes"},
      {number("n/a"), not_a_number + "n/a'"},
      {number(""), not_a_number + "'"},
      {number("nan"), not_a_number + "nan'"},
      {number("inf"), not_a_number + "inf'"},
      {number("-1"), not_a_number + "-1'"},
      {number("1e999"), not_a_number + "1e999'"},
      {number("12 345"), not_a_number + "12 345'"},
      {number("12,34"), not_a_number + "12,34'"},
      {number("1234,567"), not_a_number + "1234,567'"},
      {number("1,23,456"), not_a_number + "1,23,456'"},
      {number(",123"), not_a_number + ",123'"},
      {number("1.048.576"), not_a_number + "1.048.576'"},
      {number("1.5,000"), not_a_number + "1.5,000'"}};
  for (const Bad& one : bad) {
    CAPTURE(one.log);
    CHECK_THROWS_WITH(read_ncu_log(one.log), test::contains_text("the log of ncu: " + one.sentence));
  }
}

TEST_CASE("ncu log: cut off at any byte it is refused or short of kernels, never misread", "[run][profile]") {
  const std::string log = kHead + kUnits + kLine + kLine;
  const std::size_t whole_first = log.size() - kLine.size();
  for (std::size_t bytes = 0; bytes + 1 < log.size(); ++bytes) {
    CAPTURE(bytes);
    if (bytes == whole_first || bytes + 1 == whole_first) {
      CHECK(read_ncu_log(log.substr(0, bytes)).size() == 1);
    } else {
      CHECK_THROWS(read_ncu_log(log.substr(0, bytes)));
    }
  }
}

TEST_CASE("ncu log: a missing permission is told with the ways to get it, another error as ncu tells it",
          "[run][profile]") {
  const std::string denied =
      "==PROF== Connected to process 4711\n"
      "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the "
      "target device 0.\n";
  CHECK_THAT(ncu_complaint(denied), test::contains_text("--cap-add=SYS_ADMIN"));
  CHECK_THAT(ncu_complaint(denied), test::contains_text("NVreg_RestrictProfilingToAdminUsers=0"));
  CHECK(ncu_complaint("==PROF== Connected\n==ERROR== Failed to find metric dram__bytes.sum\n") ==
        "==ERROR== Failed to find metric dram__bytes.sum");
  CHECK(ncu_complaint(kHead + kUnits + kLine) == "");
}
