#include "harness/run/run.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <system_error>

#include "harness/operator/registry.hpp"
#include "harness/results/compare_text.hpp"
#include "harness/results/doctor.hpp"
#include "harness/results/file_write.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/run_parts.hpp"
#include "harness/results/sha256.hpp"
#include "harness/results/status.hpp"
#include "harness/results/table.hpp"
#include "harness/results/terminal.hpp"
#include "harness/run/device_lock.hpp"
#include "harness/run/device_team.hpp"
#include "harness/run/executors.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/journal.hpp"
#include "harness/run/output_path.hpp"
#include "harness/run/progress_observer.hpp"
#include "harness/run/resume.hpp"
#include "harness/run/row_device.hpp"
#include "harness/run/row_record.hpp"
#include "harness/run/row_text.hpp"
#include "harness/sweep/shard.hpp"

namespace inferometer {
namespace {

void say(const std::string& message) { std::fprintf(stderr, "inferometer: %s\n", message.c_str()); }

std::string own_sha256() {
  const char* const path = "/proc/self/exe";
  // "e": workers that are started meanwhile do not inherit it.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rbe"), &std::fclose);
  if (!file) throw std::system_error(errno, std::generic_category(), path);
  std::string content(std::filesystem::file_size(path), '\0');
  if (std::fread(content.data(), 1, content.size(), file.get()) != content.size())
    throw std::system_error(EIO, std::generic_category(), path);
  return sha256_hex(content);
}

class Run {
 public:
  // Throws OutputError.
  Run(const Sweep& sweep, const RunOptions& options)
      : sweep_(sweep),
        options_(options),
        text_of_(sweep),
        output_(resolve_output(options.output)),
        journal_(output_ + "l"),
        devices_(options.devices) {
    if (devices_.empty()) devices_ = {options.device};
    if (options.against) counterparts_ = rows_to_interleave(sweep, options.against->base);
    check_room(output_, sweep.rows.size());
    header_.config_sha256 = sweep.config_sha256;
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
    if (options_.print_table && !records_.empty())
      std::fputs(result_table(sweep_, records_, colour, columns).c_str(), stdout);
    std::fflush(stdout);
    if (interrupted) return kInterrupted;
    const bool all_well = std::all_of(records_.begin(), records_.end(),
                                      [](const auto& record) { return is_success(record.second.status); });
    const int compared = options_.against ? print_comparison() : kAllWell;
    return saved && all_well ? compared : kRowFailed;
  }

 private:
  // Rows of the journal of the same run are not run again.
  void take_up() {
    earlier_ = journal_.read();
    if (!earlier_) {
      say(journal_.path() + " holds no rows: nothing to resume, all rows are measured");
      return;
    }
    complete_header();
    header_.device = earlier_->header.device;  // known for sure once a worker has opened it
    header_.driver = earlier_->header.driver;
    header_.started_at = earlier_->header.started_at;
    header_.devices = earlier_->header.devices;
    refuse_another_run(header_, *earlier_, journal_.path());
    refuse_other_rows(sweep_, *earlier_, journal_.path());
    for (const Record& record : earlier_->records) records_[record.id] = record;
    measured_ = records_.size();
    say("resuming: " + rows_measured() + " are in " + journal_.path());
  }

  void complete_header() {
    if (own_sha256_.valid()) header_.binary_sha256 = own_sha256_.get();
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
    ExecutorPlan plan{.sweep = sweep_, .options = options_, .devices = devices_, .counterparts = counterparts_};
    if (earlier_) plan.known = earlier_->header.devices;
    DeviceTeam team(make_executors(plan, interrupt, observer, counterparts_took_));
    observer.row_started("measuring this machine");
    team.open();
    complete_header();  // before the processors are measured: it uses one of them
    begin(team.measure_host());
    const DeviceTeam::Callbacks callbacks{.started = [&](const SweepRow& row) { observer.row_started(text_of_(row)); },
                                          .finished =
                                              [&](const SweepRow& row, const DeviceReport& device, Record record) {
                                                record.device = device_name(record, device);
                                                journal_.append(record);
                                                records_[row.id] = record;
                                                ++measured_;
                                                observer.row_finished(text_of_(row), record);
                                              }};
    if (devices_.size() == 1) return team.run({rows_where([](const SweepRow&) { return true; })}, callbacks);
    // Processors are shared by all rows that use them: those rows run one after the other.
    team.run_alone(rows_where([](const SweepRow& row) { return !on_gpu(row); }), callbacks);
    team.run(groups_left(), callbacks);
  }

  template <class Predicate>
  DeviceTeam::Group rows_where(const Predicate& wanted) const {
    DeviceTeam::Group group;
    for (const SweepRow& row : sweep_.rows)
      if (wanted(row) && !records_.contains(row.id)) group.push_back(&row);
    return group;
  }

  // What can run side by side: rows with a baseline in common stay together. The longest first, so that no device is
  // left with one while the others are through.
  std::deque<DeviceTeam::Group> groups_left() const {
    std::deque<DeviceTeam::Group> groups;
    for (const RowGroup& rows :
         row_groups(sweep_, [this](const SweepRow& row) { return !records_.contains(row.id); })) {
      DeviceTeam::Group group;
      for (const std::size_t i : rows.rows) group.push_back(&sweep_.rows[i]);
      groups.push_back(std::move(group));
    }
    return groups;
  }

  void begin(const std::vector<DeviceReport>& reports) {
    refuse_uneven(devices_, reports);
    reports_ = reports;
    header_.devices = reports.front();
    header_.device = device_names(reports);
    header_.driver = reports.front().gpu ? reports.front().gpu->driver : "";
    for (const std::string& device : lockable_devices(reports)) {
      locks_.emplace_back(device);
      if (locks_.back().taken_by_another())
        say("another run measures on " + device + " at this moment; both spoil each other's times");
    }
    say_faults();
    if (earlier_) {
      refuse_another_run(header_, *earlier_, journal_.path());
      journal_.continue_after(*earlier_);
    } else {
      journal_.begin(header_);
    }
  }

  // Before hours are spent on figures that do not mean what they say.
  void say_faults() const {
    if (options_.quiet) return;
    for (const DeviceReport& report : reports_)
      for (const Finding& finding : findings(report))
        if (finding.severity == Severity::fault)
          say("fault: " + finding.topic + " (" + finding.device + "): " + finding.sentence);
  }

  Json results() const {
    const RunInfo info{.started_at = header_.started_at,
                       .finished_at = utc_now(),
                       .seed = options_.seed,
                       .argv = options_.argv,
                       .host = read_host_info(),
                       .devices = header_.devices};
    Json json = results_json(sweep_, info, records_);
    note_parts(json, sweep_, reports_);
    return json;
  }

  // Returns its exit code.
  int print_comparison() const {
    const Comparison comparison = compare_against(*options_.against, results(), counterparts_took_);
    std::printf("\nAgainst %s; %zu of the rows were measured in turn with their counterparts.\n%s",
                options_.against->path.c_str(), counterparts_took_.size(),
                comparison_text(comparison, {.all_rows = true}).c_str());
    std::fflush(stdout);
    return exit_code(comparison);
  }

  // False when the file could not be written; then the journal keeps the rows, as it does when part of a run would
  // take the place of more rows from an earlier one.
  bool write_results() {
    if (measured_ == 0) {
      std::error_code unknown;  // then it is not said to be there
      say("nothing was measured; " + output_ +
          (std::filesystem::exists(output_, unknown) ? " is left as it is" : " is not written"));
      return true;
    }
    const bool complete = measured_ == sweep_.rows.size();
    if (const auto older = complete ? std::nullopt : rows_in_results_file(output_); older && *older > measured_) {
      say(rows_measured() + " are in " + journal_.path() + "; " + output_ + " still is the older one, with " +
          std::to_string(*older) + " rows; run the same command with --resume to finish this run");
      return true;
    }
    try {
      constexpr int kIndent = 1;
      write_file_atomically(output_, results().dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n");
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
  RowTexts text_of_;
  std::string output_;
  Journal journal_;
  // Of a program of some 100 MB it takes a second: beside the opening of the devices.
  std::future<std::string> own_sha256_ = std::async(std::launch::async, &own_sha256);
  JournalHeader header_;
  std::optional<JournalContent> earlier_;
  RecordsById records_;
  std::size_t measured_ = 0;           // records that are in the journal too
  std::vector<int> devices_;           // GPU ordinals
  std::vector<DeviceReport> reports_;  // of each, once opened
  std::vector<DeviceLock> locks_;
  std::map<std::string, SweepRow> counterparts_;  // measured beside rows, by their ids
  RecordsById counterparts_took_;
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
