// Sweeps of 100,000 rows and configs of 10 MB: they start at once, in little memory.
#include <malloc.h>

#include <sstream>

#include "harness/sweep/sweep.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

constexpr std::size_t kRows = 100'000;
// Of processor time. Half a second to one where this was written, hours when each row looks at all others; how fast it
// is exactly, sweep_benchmark tells.
constexpr double kMostSeconds = 10;

std::string config_of_many_rows() {
  Json n = Json::array();
  for (std::int64_t i = 1; i <= 10'000; ++i) n.push_back(i);
  return Json{{"schema", "inferometer.sweep/1"}, {"name", "large"},
              {"operator", "test_copy"},         {"variants", {"cpu.right", "cpu.chatty"}},
              {"baseline", "cpu.right"},         {"axes", {{"n", n}, {"sleep_ms", {0, 1, 2, 3, 4}}}}}
      .dump();
}

// Of a process: seconds of processor time so far, and the most memory it had.
double processor_seconds(pid_t process) {
  std::string stat = read_text("/proc/" + std::to_string(process) + "/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));  // the name before it may hold blanks
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double megabytes_of(pid_t process, const std::string& field) {
  std::istringstream status(read_text("/proc/" + std::to_string(process) + "/status"));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field)) return std::stod(line.substr(field.size())) / 1000;
  return 0;
}

}  // namespace

TEST_CASE("run: 100,000 rows start in little processor time and 500 MB", "[run][large]") {
  const ScratchFolder folder;
  const std::string journal = folder / "r.jsonl";
  const std::string config = config_of_many_rows();
  malloc_trim(0);  // else the child would find what earlier tests freed
  const double inherited = megabytes_of(getpid(), "VmRSS:");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), stream);
    const Sweep sweep = parse_sweep(config, "large.json", {});
    if (sweep.rows.size() != kRows) _exit(99);
    _exit(run_sweep(sweep, {.output = folder / "r.json"}));
  }
  ChildRun::wait_until([&] { return !journal_rows(journal).empty(); });  // the first row is through
  const double seconds = processor_seconds(child);
  const double megabytes = megabytes_of(child, "VmHWM:") - inherited;
  kill(child, SIGINT);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 130);
  CHECK(seconds > 0);
  CHECK(seconds < kMostSeconds);
  CHECK(megabytes > 1);
  CHECK(megabytes < 500);
}

TEST_CASE("run: a config of 10 MB is read in little processor time", "[run][large]") {
  Json config = Json::parse(config_of_many_rows());
  config["axes"] = {{"n", {1, 2}}};
  SECTION("in one long text") { config["question"] = std::string(10'000'000, 'x'); }
  SECTION("in many conditions") {
    Json conditions = Json::array();
    for (int i = 0; i < 200'000; ++i) conditions.push_back("n != 4711 or n == " + std::to_string(i) + " or n < 100000");
    config["where"] = conditions;
  }
  const std::string text = config.dump();
  REQUIRE(text.size() > 8'000'000);
  const double before = processor_seconds(getpid());
  CHECK(parse_sweep(text, "large.json", {}).rows.size() == 4);
  CHECK(processor_seconds(getpid()) - before < kMostSeconds);
}
