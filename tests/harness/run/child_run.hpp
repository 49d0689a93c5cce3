// Runs sweeps of test_copy in a child process, as a user's shell would, with all that it prints.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "harness/results/json.hpp"
#include "harness/results/status.hpp"
#include "harness/run/run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/test_copy.hpp"

namespace inferometer::test {

// A folder of its own for each test, gone afterwards.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = std::filesystem::temp_directory_path() / "inferometer_test.XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ / name; }
  bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline Json read_json(const std::string& path) {
  INFO(path);
  return Json::parse(read_text(path));
}

// What an earlier run of `rows` rows may have left at the output.
inline std::string older_results(std::size_t rows) {
  const Json row = {{"id", "older"}, {"problem", {{"n", 1}}}, {"metrics", Json::array({Json::object()})}};
  return Json{{"rows", Json(rows, row)}, {"config", {{"rows", {1, 2}}}}, {"schema", "inferometer.results/1"}}.dump();
}

// It passed its check and was timed: on a busy machine the time of a copy may be too uncertain to be ok.
inline bool was_measured(const Json& row) {
  const auto status = parse_status(row.at("status").get<std::string>());
  return status && has_timing(*status);
}

struct CopyRow {
  std::string variant = "cpu.right";
  std::int64_t n = 4096;
  std::int64_t sleep_ms = 0;
  std::int64_t dies_at = 0;
  bool not_finite = false;
};

// Rows get ids "000000000000", "000000000001", ... in their order; the first is everyone's baseline.
inline Sweep copy_sweep(const std::vector<CopyRow>& rows) {
  Sweep sweep;
  sweep.path = "experiments/copy.json";
  sweep.name = "copy";
  sweep.operator_name = "test_copy";
  sweep.config_text = R"({"name": "copy"})";
  sweep.config_sha256 = std::string(64, 'c');
  // Warm: no time goes into clearing caches, and the many samples stand a few that other work took the processor from.
  sweep.measure = {
      .cache = CacheMode::warm, .min_samples = 15, .max_samples = 40, .max_seconds = 0.2, .relative_ci = 0.1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::string id = std::to_string(i);
    id.insert(0, 12 - id.size(), '0');
    const CopyRow& row = rows[i];
    sweep.rows.push_back({.id = id,
                          .operator_name = "test_copy",
                          .variant = row.variant,
                          .problem = {{"n", row.n},
                                      {"sleep_ms", row.sleep_ms},
                                      {"dies_at", row.dies_at},
                                      {"not_finite", row.not_finite}},
                          .baseline_id = std::string(12, '0')});
  }
  return sweep;
}

// Closed until it is opened: a run that starts meanwhile goes no further than its first row of cpu.gated.
class Gate {
 public:
  Gate() {
    write_text(path_, "closed");
    setenv(kGate, path_.c_str(), 1);
  }
  ~Gate() { unsetenv(kGate); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { std::filesystem::remove(path_); }

 private:
  ScratchFolder folder_;
  std::string path_ = folder_ / "gate";
};

// Two rows, then one that waits at the gate, then two more.
inline const Sweep& gated_sweep() {
  static const Sweep sweep =
      copy_sweep({{.n = 4000}, {.n = 5000}, {.variant = "cpu.gated", .n = 6000}, {.n = 7000}, {.n = 8000}});
  return sweep;
}
inline constexpr std::size_t kRowsBeforeGate = 2;

struct ChildResult {
  int exit_code = -1;  // 128 + signal where one killed it
  std::string out;
  std::string err;

  // As was_measured for the rows of its table: where some are suspect and none is worse, 1 is a matter of timing.
  bool ended_well() const {
    const auto holds = [&](const std::string& word) { return out.find(word) != std::string::npos; };
    const bool failed = holds("incorrect") || holds("crashed") || holds("timed_out") || holds("out_of_memory") ||
                        holds("error: ") || err.find("cannot write") != std::string::npos;
    return exit_code == 0 || (exit_code == 1 && holds("suspect: ") && !failed);
  }
};

// A run under way. `before` is called in the child first.
class ChildRun {
 public:
  ChildRun(const Sweep& sweep, const RunOptions& options, const std::function<void()>& before = {}) {
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);  // Catch's own handlers
    redirect(STDOUT_FILENO, out_);
    redirect(STDERR_FILENO, err_);
    if (before) before();
    const int code = run_sweep(sweep, options);
    std::fflush(nullptr);
    _exit(code);
  }
  ~ChildRun() {
    if (!waited_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  ChildRun(const ChildRun&) = delete;
  ChildRun& operator=(const ChildRun&) = delete;

  pid_t pid() const { return pid_; }

  // Its worker; waits for it to be there.
  pid_t worker() const {
    const std::string children = "/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children";
    pid_t worker = 0;
    wait_until([&] { return static_cast<bool>(std::ifstream(children) >> worker); });
    return worker;
  }

  ChildResult wait() {
    int status = 0;
    REQUIRE(waitpid(pid_, &status, 0) == pid_);
    waited_ = true;
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = read_text(folder_ / out_),
            .err = read_text(folder_ / err_)};
  }

  static void wait_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(10);  // on a crowded machine too
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) FAIL("waited 10 minutes in vain");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

 private:
  void redirect(int fd, const char* name) const {
    const int file = open((folder_ / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(file, fd);
  }

  static constexpr const char* out_ = "out";
  static constexpr const char* err_ = "err";
  ScratchFolder folder_;
  pid_t pid_ = -1;
  bool waited_ = false;
};

inline ChildResult run_in_child(const Sweep& sweep, const RunOptions& options,
                                const std::function<void()>& before = {}) {
  return ChildRun(sweep, options, before).wait();
}

// Whole lines of a journal, its header left out.
inline std::vector<std::string> journal_rows(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (!file.eof()) lines.push_back(line);
  if (!lines.empty()) lines.erase(lines.begin());
  return lines;
}

}  // namespace inferometer::test
