// What survives when the supervisor is interrupted, killed, or meets another run.
#include <sys/resource.h>

#include <algorithm>

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// The rows before the gate are in the journal, and the next one waits.
void wait_at_gate(const std::string& output) {
  ChildRun::wait_until([&] { return journal_rows(output + "l").size() == kRowsBeforeGate; });
}

struct RunAtGate {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Gate gate;
  ChildRun run{gated_sweep(), {.output = output}};

  RunAtGate() { wait_at_gate(output); }
};

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
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  const pid_t worker = run.worker();
  kill(run.pid(), SIGKILL);
  CHECK(run.wait().exit_code == 128 + SIGKILL);
  ChildRun::wait_until(
      [&] { return kill(worker, 0) != 0 || read_text("/proc/" + std::to_string(worker) + "/cmdline").empty(); });
  CHECK_FALSE(std::filesystem::exists(output));
  const std::vector<std::string> measured = journal_rows(output + "l");
  REQUIRE(measured.size() == kRowsBeforeGate);

  gate.open();
  const ChildResult result = run_in_child(gated_sweep(), {.output = output, .resume = true});
  INFO(result.err);
  CHECK(result.ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == gated_sweep().rows.size());
  for (const std::string& line : measured) check_contains(rows, line);
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("resume: Ctrl-C writes what was measured, exits 130 and says how to go on", "[run][resume]") {
  const int signal = GENERATE(SIGINT, SIGTERM);
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  const pid_t worker = run.worker();
  kill(run.pid(), signal);
  const ChildResult interrupted = run.wait();
  CHECK(interrupted.exit_code == 130);
  CHECK(kill(worker, 0) != 0);
  CHECK(interrupted.err.find("--resume") != std::string::npos);
  const std::vector<std::string> measured = journal_rows(output + "l");
  const Json part = read_json(output).at("rows");
  CHECK(part.size() == measured.size());
  CHECK(part.size() == kRowsBeforeGate);

  gate.open();
  CHECK(run_in_child(gated_sweep(), {.output = output, .resume = true}).ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == gated_sweep().rows.size());
  for (const std::string& line : measured) check_contains(rows, line);
}

TEST_CASE("run: a signal to stop that reaches the worker alone costs no row: the supervisor decides", "[run][worker]") {
  const int signal = GENERATE(SIGINT, SIGTERM);  // a scheduler sends it to one process of a job after the other
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  kill(run.worker(), signal);
  gate.open();
  const ChildResult result = run.wait();
  INFO(result.err);
  CHECK(result.ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(std::count_if(rows.begin(), rows.end(), was_measured) == std::ssize(gated_sweep().rows));
}

TEST_CASE("resume: Ctrl-C stops an endless row, and does not wait for its limit", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  ChildRun run(copy_sweep({{"cpu.right"}, {"cpu.endless"}}), {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  kill(run.pid(), SIGINT);
  CHECK(run.wait().exit_code == 130);
  CHECK(journal_rows(output + "l").size() == 1);  // at its limit it would have been timed_out
}

TEST_CASE("resume: a journal cut anywhere in its last record loses that record alone", "[run][resume]") {
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  kill(run.pid(), SIGKILL);
  run.wait();
  const std::string whole = read_text(output + "l");
  const std::vector<std::string> measured = journal_rows(output + "l");
  write_text(output + "l", whole.substr(0, whole.size() - measured.back().size() / 2));
  gate.open();
  CHECK(run_in_child(gated_sweep(), {.output = output, .resume = true}).ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == gated_sweep().rows.size());
  check_contains(rows, measured.front());
}

TEST_CASE("resume: rows of another run are refused with what differs", "[run][resume]") {
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  kill(run.pid(), SIGKILL);
  run.wait();
  const std::string journal = read_text(output + "l");
  const ChildResult other_seed = run_in_child(gated_sweep(), {.output = output, .resume = true, .seed = 2});
  CHECK(other_seed.exit_code == 2);
  CHECK(other_seed.err.find("seed is 2, the journal's is 1") != std::string::npos);
  Sweep other = gated_sweep();
  other.config_sha256 = std::string(64, 'd');
  const ChildResult other_config = run_in_child(other, {.output = output, .resume = true});
  CHECK(other_config.exit_code == 2);
  CHECK(other_config.err.find("config_sha256 is dddd") != std::string::npos);
  CHECK(read_text(output + "l") == journal);
}

TEST_CASE("resume: a command that leaves out rows of the journal is refused, and they stay", "[run][resume]") {
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  kill(run.pid(), SIGKILL);
  run.wait();
  const std::string journal = read_text(output + "l");
  Sweep last_row = gated_sweep();  // as --row makes it: the same config, fewer rows
  last_row.rows.erase(last_row.rows.begin(), last_row.rows.end() - 1);
  const ChildResult result = run_in_child(last_row, {.output = output, .resume = true});
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("rows are not among the rows of this command") != std::string::npos);
  CHECK(read_text(output + "l") == journal);
  CHECK_FALSE(std::filesystem::exists(output));
}

TEST_CASE("resume: a journal of a part of the rows is taken up by the whole", "[run][resume]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Sweep part = copy_sweep({{"cpu.right"}, {"cpu.endless"}});
  const Sweep whole = copy_sweep({{"cpu.right"}, {.n = 5000}, {.n = 6000}});
  ChildRun run(part, {.output = output});
  ChildRun::wait_until([&] { return !journal_rows(output + "l").empty(); });
  kill(run.pid(), SIGKILL);
  run.wait();
  const ChildResult result = run_in_child(whole, {.output = output, .resume = true});
  INFO(result.err);
  CHECK(result.ended_well());
  CHECK(result.err.find("resuming: 1 of 3 rows") != std::string::npos);
  CHECK(result.err.find("[1/2]") != std::string::npos);
  CHECK(read_json(output).at("rows").size() == 3);
}

TEST_CASE("resume: another number of threads is another run", "[run][resume]") {
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  kill(run.pid(), SIGKILL);
  run.wait();
  std::string journal = read_text(output + "l");
  const std::string field = R"("threads_used":)";
  REQUIRE(journal.find(field) != std::string::npos);
  journal.insert(journal.find(field) + field.size(), "1");  // 2 becomes 12: no need of a machine that has both
  write_text(output + "l", journal);
  gate.open();
  const ChildResult result = run_in_child(gated_sweep(), {.output = output, .resume = true});
  CHECK(result.exit_code == 2);
  CHECK(result.err.find("threads_used is ") != std::string::npos);
  CHECK(read_text(output + "l") == journal);
}

TEST_CASE("run: interrupted, it leaves an older file of more rows until it is resumed to its end", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  const std::string old = older_results(gated_sweep().rows.size());
  write_text(output, old);
  Gate gate;
  ChildRun run(gated_sweep(), {.output = output});
  wait_at_gate(output);
  kill(run.pid(), SIGINT);
  const ChildResult interrupted = run.wait();
  INFO(interrupted.err);
  CHECK(interrupted.exit_code == 130);
  CHECK(read_text(output) == old);
  CHECK(interrupted.err.find("still is the older one, with 5 rows") != std::string::npos);
  CHECK(interrupted.err.find("--resume") != std::string::npos);
  const std::vector<std::string> measured = journal_rows(output + "l");
  REQUIRE(measured.size() == kRowsBeforeGate);

  gate.open();
  CHECK(run_in_child(gated_sweep(), {.output = output, .resume = true}).ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == gated_sweep().rows.size());
  check_contains(rows, measured.front());
}

TEST_CASE("run: only results files, whole and empty ones, are replaced", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "important.txt";
  for (const std::string& theirs :
       {std::string("my notes\n"), std::string(R"({"schema": "inferometer.sweep/1"})"), std::string("[1]"),
        std::string(R"({"schema": 1})"), older_results(2) + "and more", std::string(" ")}) {
    write_text(output, theirs);
    const ChildResult result = run_in_child(copy_sweep({{"cpu.endless"}}), {.output = output});
    INFO(theirs << ": " << result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find("cannot be read as a results file") != std::string::npos);
    CHECK(read_text(output) == theirs);
    CHECK_FALSE(std::filesystem::exists(output + "l"));
  }
  for (const std::string& ours : {std::string(), older_results(3)}) {
    write_text(output, ours);
    CHECK(run_in_child(copy_sweep({{"cpu.right"}}), {.output = output}).ended_well());
    CHECK(read_json(output).at("rows").size() == 1);
  }
}

TEST_CASE("run: symbolic links are followed, to a file that is not there yet too", "[run][files]") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "links");
  std::filesystem::create_symlink("second", folder / "links/first");
  std::filesystem::create_symlink("../target.json", folder / "links/second");
  for (int times = 0; times < 2; ++times) {  // dangling, then live
    CHECK(run_in_child(copy_sweep({{"cpu.right"}}), {.output = folder / "links/first"}).ended_well());
    CHECK(std::filesystem::is_symlink(folder / "links/first"));
    CHECK(std::filesystem::is_symlink(folder / "links/second"));
    CHECK(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / "target.json")));
    CHECK(read_json(folder / "target.json").at("rows").size() == 1);
  }
  std::filesystem::create_symlink("loop", folder / "loop");
  const ChildResult loop = run_in_child(copy_sweep({{"cpu.endless"}}), {.output = folder / "loop"});
  CHECK(loop.exit_code == 2);
  CHECK(loop.err.find("cannot write " + (folder / "loop")) != std::string::npos);
}

TEST_CASE("run: two runs never write one file", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  Gate gate;
  ChildRun first(gated_sweep(), {.output = output});
  wait_at_gate(output);
  const ChildResult second = run_in_child(gated_sweep(), {.output = output});
  CHECK(second.exit_code == 2);
  CHECK(second.err.find("another run is writing this file") != std::string::npos);
  gate.open();
  CHECK(first.wait().ended_well());
  CHECK(read_json(output).at("rows").size() == gated_sweep().rows.size());
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
  const std::string old = older_results(1);
  write_text(output, old);
  const ChildResult result = run_in_child(copy_sweep({{"cpu.endless"}}), {.output = output}, [] {
    const rlimit limit{4096, 4096};  // less than one row needs
    setrlimit(RLIMIT_FSIZE, &limit);
  });
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(read_text(output) == old);
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}

TEST_CASE("run: a disk that fills up in mid-run ends it, and what was measured is resumed", "[run][resume]") {
  RunAtGate at_gate;
  auto& [folder, output, gate, run] = at_gate;
  const rlim_t room = read_text(output + "l").size() + 100;  // less than another record
  const rlimit limit{room, room};
  REQUIRE(prlimit(run.pid(), RLIMIT_FSIZE, &limit, nullptr) == 0);
  gate.open();
  const ChildResult full = run.wait();
  INFO(full.err);
  CHECK(full.exit_code == 1);
  CHECK(full.err.find("cannot write") != std::string::npos);
  CHECK(full.err.find(output + "l") != std::string::npos);
  const std::vector<std::string> measured = journal_rows(output + "l");
  CHECK(measured.size() == kRowsBeforeGate);

  CHECK(run_in_child(gated_sweep(), {.output = output, .resume = true}).ended_well());
  const Json rows = read_json(output).at("rows");
  CHECK(rows.size() == gated_sweep().rows.size());
  for (const std::string& line : measured) check_contains(rows, line);
}

TEST_CASE("run: a missing folder of the output is made", "[run][files]") {
  const ScratchFolder folder;
  const std::string output = folder / "new/folder/r.json";
  CHECK(run_in_child(copy_sweep({{"cpu.right"}}), {.output = output}).ended_well());
  CHECK(read_json(output).at("rows").size() == 1);
}
