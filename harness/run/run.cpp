#include "harness/run/run.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>
#include <unordered_set>

#include "harness/results/file_write.hpp"
#include "harness/results/progress.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/sha256.hpp"
#include "harness/results/status.hpp"
#include "harness/results/table.hpp"
#include "harness/results/terminal.hpp"
#include "harness/run/journal.hpp"
#include "harness/run/output_path.hpp"
#include "harness/run/row_executor.hpp"
#include "harness/run/row_record.hpp"

namespace inferometer {
namespace {

enum ExitCode { kAllWell = 0, kRowFailed = 1, kWrongUse = 2, kInterrupted = 130 };

void say(const std::string& message) { std::fprintf(stderr, "inferometer: %s\n", message.c_str()); }

std::string own_sha256() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return sha256_hex(std::string{std::istreambuf_iterator<char>(file), {}});
}

class ProgressObserver : public RunObserver {
 public:
  explicit ProgressObserver(Progress& progress) : progress_(progress) {}
  void phase(std::string_view name) override { progress_.phase(name); }
  void output(const std::string& line) override {
    constexpr int kMostLines = 20;
    if (++lines_ <= kMostLines) progress_.message("worker: " + line);
    if (lines_ == kMostLines) progress_.message("worker: what else this row prints is not shown");
  }
  void tick() override { progress_.tick(); }
  void row_started(const std::string& row) {
    lines_ = 0;
    progress_.row_started(row);
  }

 private:
  int lines_ = 0;  // printed by the worker in this row
  Progress& progress_;
};

class Run {
 public:
  // Throws OutputError.
  Run(const Sweep& sweep, const RunOptions& options)
      : sweep_(sweep), options_(options), output_(resolve_output(options.output)), journal_(output_ + "l") {
    check_room(output_, sweep.rows.size());
    header_.config_sha256 = sweep.config_sha256;
    header_.binary_sha256 = own_sha256();
    header_.seed = options.seed;
    header_.started_at = utc_now();
    if (options.resume) take_up();
  }

  int execute() {
    bool interrupted = false;
    bool saved = true;
    try {
      measure();
    } catch (const Interrupted&) {
      interrupted = true;
    } catch (const CannotGoOn& error) {
      say(std::string(error.what()) + "; " + std::to_string(rows_left()) + " rows are not measured");
      for (const SweepRow& row : sweep_.rows)
        if (!records_.contains(row.id)) records_[row.id] = row_record(row, Status::crashed, error.what());
    } catch (const JournalError& error) {
      say(std::string(error.what()) + "; what was measured before is in " + journal_.path());
      saved = false;
    }
    saved = saved && write_results();
    const bool colour = shows_colour(stdout);
    const auto columns = is_terminal(stdout) ? static_cast<std::size_t>(terminal_columns(stdout)) : 0;
    if (!records_.empty()) std::fputs(result_table(sweep_, records_, colour, columns).c_str(), stdout);
    std::fflush(stdout);
    if (interrupted) return kInterrupted;
    const bool all_well = std::all_of(records_.begin(), records_.end(),
                                      [](const auto& record) { return is_success(record.second.status); });
    return saved && all_well ? kAllWell : kRowFailed;
  }

 private:
  // Rows of the journal of the same run are not run again.
  void take_up() {
    earlier_ = journal_.read();
    if (!earlier_) {
      say(journal_.path() + " holds no rows: nothing to resume, all rows are measured");
      return;
    }
    header_.device = earlier_->header.device;  // known for sure once a worker has opened it
    header_.driver = earlier_->header.driver;
    header_.started_at = earlier_->header.started_at;
    header_.devices = earlier_->header.devices;
    refuse_another_run();
    refuse_other_rows();
    for (const Record& record : earlier_->records) records_[record.id] = record;
    measured_ = records_.size();
    say("resuming: " + rows_measured() + " are in " + journal_.path());
  }

  void refuse_another_run() const {
    if (const std::string what = difference(header_, earlier_->header); !what.empty())
      throw OutputError("cannot resume from " + journal_.path() + ": " + what + "; run without --resume to start over");
  }

  // Rows of the same config that this command leaves out: they would be neither in its results nor, once it is
  // through, in the journal.
  void refuse_other_rows() const {
    std::unordered_set<std::string_view> ids;
    for (const SweepRow& row : sweep_.rows) ids.insert(row.id);
    const auto others = std::count_if(earlier_->records.begin(), earlier_->records.end(),
                                      [&](const Record& record) { return !ids.contains(record.id); });
    if (others != 0)
      throw OutputError("cannot resume from " + journal_.path() + ": " + std::to_string(others) + " of its " +
                        std::to_string(earlier_->records.size()) +
                        " rows are not among the rows of this command; resume without --row, or choose another -o");
  }

  std::size_t rows_left() const { return sweep_.rows.size() - records_.size(); }

  std::string rows_measured() const {
    return std::to_string(measured_) + " of " + std::to_string(sweep_.rows.size()) + " rows";
  }

  void measure() {
    if (rows_left() == 0) return;
    const InterruptGuard interrupt;
    Progress progress(stderr, static_cast<int>(rows_left()), options_.quiet);
    ProgressObserver observer(progress);
    SessionConfig config = session_config(sweep_, options_.seed, options_.device);
    if (earlier_) config.known = earlier_->header.devices;
    std::unique_ptr<RowExecutor> executor;
    if (options_.in_process) {
      executor = std::make_unique<InProcessExecutor>(config, interrupt, observer);
    } else {
      executor = std::make_unique<WorkerExecutor>(config, interrupt, observer);
    }
    observer.row_started("measuring this machine");
    begin(executor->start());
    for (const SweepRow& row : sweep_.rows) {
      if (records_.contains(row.id)) continue;
      observer.row_started(row.operator_name + "/" + row.variant + " " + to_string(row.problem));
      const Record record = executor->run(row);
      journal_.append(record);
      records_[row.id] = record;
      ++measured_;
      progress.row_finished(record);
    }
  }

  void begin(const DeviceReport& devices) {
    header_.devices = devices;
    header_.device = devices.gpu ? devices.gpu->uuid + " " + devices.gpu->name : read_host_info().cpu_model;
    header_.driver = devices.gpu ? devices.gpu->driver : "";
    if (earlier_) {
      refuse_another_run();
      journal_.continue_after(*earlier_);
    } else {
      journal_.begin(header_);
    }
  }

  // False when the file could not be written; then the journal keeps the rows, as it does when part of a run would
  // take the place of more rows from an earlier one.
  bool write_results() {
    if (measured_ == 0) {
      say("nothing was measured; " + output_ + " is left as it is");
      return true;
    }
    const bool complete = measured_ == sweep_.rows.size();
    if (const auto older = complete ? std::nullopt : rows_in_results_file(output_); older && *older > measured_) {
      say(rows_measured() + " are in " + journal_.path() + "; " + output_ + " still is the older one, with " +
          std::to_string(*older) + " rows; run the same command with --resume to finish this run");
      return true;
    }
    const RunInfo info{.started_at = header_.started_at,
                       .finished_at = utc_now(),
                       .seed = options_.seed,
                       .argv = options_.argv,
                       .host = read_host_info(),
                       .devices = header_.devices};
    try {
      constexpr int kIndent = 1;
      write_file_atomically(
          output_,
          results_json(sweep_, info, records_).dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n");
    } catch (const std::system_error& error) {
      say(std::string(error.what()) + "; the rows are in " + journal_.path() +
          ": make room and run again with --resume");
      return false;
    }
    if (complete) {
      journal_.remove();
      if (!options_.quiet) say("results are in " + output_);
    } else {
      say(rows_measured() + " are in " + output_ + "; run the same command with --resume to measure the others");
    }
    return true;
  }

  const Sweep& sweep_;
  const RunOptions& options_;
  std::string output_;
  Journal journal_;
  JournalHeader header_;
  std::optional<JournalContent> earlier_;
  RecordsById records_;
  std::size_t measured_ = 0;  // records that are in the journal too
};

}  // namespace

int run_sweep(const Sweep& sweep, const RunOptions& options) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is a write error like a full disk, not a death
  try {
    return Run(sweep, options).execute();
  } catch (const OutputError& error) {
    say(error.what());
    return kWrongUse;
  } catch (const std::system_error& error) {  // no process, pipe or descriptor to be had
    say(error.what());
    return kRowFailed;
  }
}

}  // namespace inferometer
