// What a row costs besides its inputs, checks and timing: messages between supervisor and worker, the journal's line on
// the disk, the line of progress, and its share of the results file. Target: under 10 ms a row, the flush included.
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "harness/results/file_write.hpp"
#include "harness/results/progress.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/results_file.hpp"
#include "harness/run/journal.hpp"
#include "harness/run/protocol.hpp"
#include "tests/harness/results/sample_record.hpp"

namespace inferometer {
namespace {

// In the current folder, not under /tmp, which is often memory and flushes for nothing.
class ScratchFolder {
 public:
  ScratchFolder() {
    if (mkdtemp(name_.data()) == nullptr) throw std::runtime_error("cannot make a folder in the current one");
  }
  ~ScratchFolder() { std::filesystem::remove_all(name_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string operator/(const char* name) const { return name_ + "/" + name; }

 private:
  std::string name_ = "row_overhead.XXXXXX";
};

SweepRow sample_row() {
  const Record record = test::sample_record();
  SweepRow row;
  row.id = record.id;
  row.operator_name = record.operator_name;
  row.variant = record.variant;
  row.problem = record.problem;
  row.baseline_id = record.id;
  return row;
}

// One line from one end of a socket to the other, parsed.
class Wire {
 public:
  Wire() {
    std::array<int, 2> pair{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) throw std::runtime_error("socketpair");
    sender_ = FileDescriptor(pair[0]);
    receiver_ = FileDescriptor(pair[1]);
    reader_ = LineReader(receiver_.get());
  }

  Json pass(const Json& message) {
    if (!write_all(sender_.get(), to_line(message) + "\n")) throw std::runtime_error("cannot send");
    while (true) {
      if (const auto line = reader_.next()) return Json::parse(*line);
      if (!reader_.fill()) throw std::runtime_error("cannot receive");
    }
  }

 private:
  FileDescriptor sender_;
  FileDescriptor receiver_;
  LineReader reader_{-1};
};

void row_overhead(benchmark::State& state) {
  const ScratchFolder folder;
  Journal journal(folder / "results.jsonl");
  journal.begin({});
  std::FILE* nowhere = std::fopen("/dev/null", "w");
  {
    Progress progress(nowhere, 1 << 20, false);
    Wire wire;
    const SweepRow row = sample_row();
    const RowOutcome outcome{.record = test::sample_record()};
    for (auto _ : state) {
      progress.row_started(to_string(row.problem));
      benchmark::DoNotOptimize(row_from(wire.pass(row_message(row))));
      for (const char* phase : {"prepare", "check", "warm-up", "measure", "check"})
        progress.phase(wire.pass(phase_message(phase)).at("name").get<std::string>());
      const Record record = result_from(wire.pass(result_message(outcome))).record;
      journal.append(record);
      progress.row_finished(record);
    }
  }
  std::fclose(nowhere);
}
BENCHMARK(row_overhead)->UseRealTime()->Unit(benchmark::kMillisecond);

// Assembled and put in place once a run: time of one file divided by its rows.
void results_file_per_row(benchmark::State& state) {
  const ScratchFolder folder;
  Sweep sweep;
  sweep.config_text = "{}";
  RecordsById records;
  for (int i = 0; i < state.range(0); ++i) {
    SweepRow row = sample_row();
    row.id = std::to_string(i);
    Record record = test::sample_record();
    record.id = row.id;
    sweep.rows.push_back(row);
    records[row.id] = record;
  }
  for (auto _ : state) write_file_atomically(folder / "results.json", results_json(sweep, {}, records).dump(1));
  state.counters["ms_per_row"] = benchmark::Counter(static_cast<double>(state.iterations() * state.range(0)) / 1e3,
                                                    benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(results_file_per_row)->Arg(1)->Arg(100)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace inferometer

BENCHMARK_MAIN();
