#include "harness/run/row_executor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "harness/results/record_json.hpp"
#include "harness/run/protocol.hpp"
#include "harness/run/row_record.hpp"

namespace inferometer {
namespace {

using Clock = Deadline::Clock;

constexpr std::chrono::seconds kHelloTime{180};  // opening a GPU takes seconds, measuring all ceilings less than 30
constexpr int kStartAttempts = 2;
constexpr const char* kNoWorker = "no worker process came up, twice: ";

std::chrono::nanoseconds from_seconds(double seconds) {
  constexpr double kLongest = 1e9;  // 31 years; more would overflow the clock
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds, kLongest) * 1e9));
}

std::string shown_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g s", seconds);
  return text;
}

// How a worker ended, what a silent SIGKILL most likely means, and its last words. `phase`: empty between two rows.
std::string describe_end(WorkerProcess& worker, const std::string& phase) {
  std::string text =
      "worker process " + worker.end() + (phase.empty() ? " before it began a row" : " in phase " + phase);
  if (worker.was_killed_by_system()) text += ", likely by the system for want of host memory (see the kernel's log)";
  if (const std::string lines = worker.last_lines(); !lines.empty()) text += "; last lines: " + lines;
  return text;
}

}  // namespace

WorkerExecutor::WorkerExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer)
    : config_(std::move(config)), interrupt_(interrupt), observer_(observer) {}

WorkerExecutor::Wait WorkerExecutor::wait(Deadline& deadline, Json& message) {
  while (true) {
    const WorkerProcess::Event event = worker_->wait(deadline.next_look(), interrupt_.fd(), message);
    deadline.look(Clock::now());
    switch (event) {
      case WorkerProcess::Event::message: return Wait::message;
      case WorkerProcess::Event::gone: return Wait::gone;
      case WorkerProcess::Event::interrupt: worker_.reset(); throw Interrupted();
      case WorkerProcess::Event::timeout:
        if (deadline.passed()) return Wait::timeout;
        observer_.tick();
    }
  }
}

void WorkerExecutor::begin_open() {
  worker_ = std::make_unique<WorkerProcess>([this](const std::string& line) { observer_.output(line); });
  observer_.phase("start");
  worker_->send(start_message(config_));  // one that is gone already is found by who waits for its answer
}

bool WorkerExecutor::await_hello(std::string& why) {
  Json message;
  Deadline deadline(Clock::now(), kHelloTime);
  const Wait answer = wait(deadline, message);
  if (answer == Wait::message && text_from(message.at("type")) == "hello") {
    report_ = device_report_from_json(message.at("devices"));
    return true;
  }
  why = answer == Wait::timeout ? "no answer within " + std::to_string(kHelloTime.count()) + " s"
                                : describe_end(*worker_, "start");
  worker_.reset();
  return false;
}

void WorkerExecutor::open() {
  std::string why;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (attempt > 0) observer_.replaced(why);
    if (!worker_) begin_open();
    if (!await_hello(why)) continue;
    if (config_.known || !config_.cpu_rows) config_.known = report_;
    return;
  }
  throw CannotGoOn(kNoWorker + why);
}

const DeviceReport& WorkerExecutor::measure_host() {
  std::string why;
  for (int attempt = 0; attempt < kStartAttempts && !config_.known; ++attempt) {
    if (attempt > 0) {
      observer_.replaced(why);
      open();
    }
    worker_->send(measure_host_message());
    if (await_hello(why)) config_.known = report_;
  }
  if (!config_.known) throw CannotGoOn(kNoWorker + why);
  return *config_.known;
}

Record WorkerExecutor::run(const SweepRow& row) {
  if (interrupt_.requested()) throw Interrupted();
  std::string why;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (!worker_) open();
    if (auto record = try_row(row, why)) return std::move(*record);
    if (attempt + 1 < kStartAttempts) observer_.replaced(why);
  }
  return row_record(row, Status::crashed, "this row was given to two workers: " + why);
}

void WorkerExecutor::end() {
  if (worker_) worker_->kill();
}

// None, with the reason, where the worker was gone before this row began: it ended between two rows, which is no row's
// fault. It may still take a message while it dies.
std::optional<Record> WorkerExecutor::try_row(const SweepRow& row, std::string& why) {
  phase_.clear();
  if (worker_->send(row_message(row))) {
    Record record = await_result(row);
    if (record.status != Status::crashed || !phase_.empty()) return record;
    why = record.reason;
    return std::nullopt;
  }
  why = describe_end(*worker_, phase_);
  worker_.reset();
  return std::nullopt;
}

Record WorkerExecutor::await_result(const SweepRow& row) {
  Deadline deadline(Clock::now(), from_seconds(config_.row.limits.row_seconds));
  Json message;
  while (true) {
    switch (wait(deadline, message)) {
      case Wait::timeout:
        worker_.reset();
        return row_record(row, Status::timed_out,
                          "no result within limits.row_seconds = " + shown_seconds(config_.row.limits.row_seconds) +
                              "; killed in phase " + (phase_.empty() ? "start" : phase_));
      case Wait::gone: {
        const std::string reason = describe_end(*worker_, phase_);
        worker_.reset();
        return row_record(row, Status::crashed, reason);
      }
      case Wait::message:
        if (text_from(message.at("type")) == "phase") {
          phase_ = message.at("name").get<std::string>();
          observer_.phase(phase_);
          continue;
        }
        RowOutcome outcome = result_from(message);
        if (outcome.device_lost || outcome.profiled) worker_.reset();
        return std::move(outcome.record);
    }
  }
}

InProcessExecutor::InProcessExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer)
    : config_(std::move(config)), interrupt_(interrupt), observer_(observer) {}

void InProcessExecutor::open() {
  try {
    session_ = std::make_unique<Session>(config_);
  } catch (const std::exception& error) {
    throw CannotGoOn(error.what());
  }
}

const DeviceReport& InProcessExecutor::measure_host() {
  try {
    session_->measure_host();
  } catch (const std::exception& error) {
    throw CannotGoOn(error.what());
  }
  return session_->report();
}

Record InProcessExecutor::run(const SweepRow& row) {
  if (interrupt_.requested()) throw Interrupted();
  if (device_lost_)
    throw CannotGoOn("the GPU answers every call with an error since the last row; run without --in-process");
  RowOutcome outcome = session_->run(row, [this](std::string_view phase) { observer_.phase(phase); });
  device_lost_ = outcome.device_lost;
  return std::move(outcome.record);
}

}  // namespace inferometer
