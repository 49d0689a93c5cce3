// What survives when the supervisor is interrupted, killed, or meets another run.
#include <sys/resource.h>

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Each row takes at least 7 launches of 50 ms: long enough to be interrupted between two rows.
const Sweep& slow_sweep() {
  static const Sweep sweep = copy_sweep({{.sleep_ms = 50},
                                         {.n = 100, .sleep_ms = 50},
                                         {.n = 200, .sleep_ms = 50},
                                         {.n = 300, .sleep_ms = 50},
                                         {.n = 400, .sleep_ms = 50}});
  return sweep;
}

// A row of the journal is in the results file as it was measured, figure by figure.
void check_contains(const Json& rows, const std::string& journal_line) {
  const Json wanted = Json::parse(journal_line);
  for (const Json& row : rows)
    if (row.at("id") == wanted.at("id")) {
      for (const auto& [key, value] : wanted.items()) CHECK(row.at(key) == value);
      return;
    }
  FAIL("no row " << wanted.at("id"));
}

}  // namespace

TEST_CASE("resume: after SIGKILL of the supervisor only what is missing runs", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(slow_sweep(), {.output = output});
  ChildRun::wait_until([&] { return journal_rows(output + "l").size() >= 2; });
  const pid_t worker = run.worker();
  kill(run.pid(), SIGKILL);
  CHECK(run.wait().exit_code == 128 + SIGKILL);
  ChildRun::wait_until(
      [&] { return kill(worker, 0) != 0 || read_text("/proc/" + std::to_string(worker) + "/cmdline").empty(); });
  CHECK_FALSE(std::filesystem::exists(output));
  const std::vector<std::string> measured = journal_rows(output + "l");
  REQUIRE(measured.size() < slow_sweep().rows.size());

  const ChildResult result = run_in_child(slow_sweep(), {.output = output, .resume = true});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == slow_sweep().rows.size());
  for (const std::string& line : measured) check_contains(rows, line);
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("resume: Ctrl-C writes what was measured, exits 130 and says how to go on", "[run][resume]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(slow_sweep(), {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  const pid_t worker = run.worker();
  kill(run.pid(), signal);
  const ChildResult interrupted = run.wait();
  CHECK(interrupted.exit_code == 130);
  CHECK(kill(worker, 0) != 0);
  CHECK(interrupted.err.find("--resume") != std::string::npos);
  const std::vector<std::string> measured = journal_rows(output + "l");
  const Json part = read_json(output).at("rows");
  CHECK(part.size() == measured.size());
  CHECK(part.size() < slow_sweep().rows.size());

  CHECK(run_in_child(slow_sweep(), {.output = output, .resume = true}).exit_code == 0);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == slow_sweep().rows.size());
  for (const std::string& line : measured) check_contains(rows, line);
}

TEST_CASE("resume: Ctrl-C stops an endless row at once", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(copy_sweep({{"cpu.right"}, {"cpu.endless"}}), {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  const auto start = std::chrono::steady_clock::now();
  kill(run.pid(), SIGINT);
  CHECK(run.wait().exit_code == 130);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("resume: a journal cut anywhere in its last record loses that record alone", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(slow_sweep(), {.output = output});
  ChildRun::wait_until([&] { return journal_rows(output + "l").size() >= 2; });
  kill(run.pid(), SIGKILL);
  run.wait();
  const std::string whole = read_text(output + "l");
  const std::vector<std::string> measured = journal_rows(output + "l");
  write_text(output + "l", whole.substr(0, whole.size() - measured.back().size() / 2));
  CHECK(run_in_child(slow_sweep(), {.output = output, .resume = true}).exit_code == 0);
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == slow_sweep().rows.size());
  check_contains(rows, measured.front());
}

TEST_CASE("resume: rows of another run are refused with what differs", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(slow_sweep(), {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  kill(run.pid(), SIGKILL);
  run.wait();
  const std::string journal = read_text(output + "l");
  const ChildResult other_seed = run_in_child(slow_sweep(), {.output = output, .resume = true, .seed = 2});
  CHECK(other_seed.exit_code == 2);
  CHECK(other_seed.err.find("seed is 2, the journal's is 1") != std::string::npos);
  Sweep other = slow_sweep();
  other.config_sha256 = std::string(64, 'd');
  const ChildResult other_config = run_in_child(other, {.output = output, .resume = true});
  CHECK(other_config.exit_code == 2);
  CHECK(other_config.err.find("config_sha256 is dddd") != std::string::npos);
  CHECK(read_text(output + "l") == journal);
}

TEST_CASE("run: two runs never write one file", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun first(slow_sweep(), {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  const ChildResult second = run_in_child(slow_sweep(), {.output = output});
  CHECK(second.exit_code == 2);
  CHECK(second.err.find("another run is writing this file") != std::string::npos);
  CHECK(first.wait().exit_code == 0);
  CHECK(read_json(output).at("rows").size() == slow_sweep().rows.size());
}

TEST_CASE("run: a path that cannot be written is found before the first row", "[run][files]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "folder");
  write_text(folder / "file", "text");
  write_text(folder / "mine.jsonl", "{\"my\": \"data\"}\n");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"/proc/inferometer.json", "cannot write /proc/inferometer.json"},
      {"/dev/full", "no regular file"},
      {folder / "folder", "is a folder"},
      {folder / "file/r.json", "cannot write"},
      {folder / "mine.json", "not a journal of this program"},
      {"", "has no name"},
  };
  for (const auto& [output, message] : cases) {
    const ChildResult result = run_in_child(copy_sweep({{"cpu.endless"}}), {.output = output});
    INFO(output << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(message) != std::string::npos);
  }
  CHECK(read_text(folder / "mine.jsonl") == "{\"my\": \"data\"}\n");
}

TEST_CASE("run: a full disk is found before the first row and damages nothing", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  write_text(output, "old");
  const ChildResult result = run_in_child(copy_sweep({{"cpu.endless"}}), {.output = output}, [] {
    const rlimit limit{4096, 4096};  // less than one row needs
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(read_text(output) == "old");
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("run: a missing folder of the output is made", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "new/folder/r.json";
  CHECK(run_in_child(copy_sweep({{"cpu.right"}}), {.output = output}).exit_code == 0);
  CHECK(read_json(output).at("rows").size() == 1);
}
