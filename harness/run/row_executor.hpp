// Runs rows somewhere: in a worker process that may die, or in this process.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/run/deadline.hpp"
#include "harness/run/interrupt.hpp"
#include "harness/run/session.hpp"
#include "harness/run/worker_process.hpp"

namespace inferometer {

// Told what happens, as it happens.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void phase(std::string_view name) = 0;
  virtual void output(const std::string& line) = 0;   // printed by the worker
  virtual void replaced(const std::string& why) = 0;  // a worker that was running no row
  virtual void tick() = 0;                            // about twice a second while waiting
};

// No further row can run. The message says why.
class CannotGoOn : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class RowExecutor {
 public:
  virtual ~RowExecutor() = default;
  // Starts what `open` then waits for, so that several executors open their devices at once.
  virtual void begin_open() {}
  // Opens the devices and measures the GPU. Throws CannotGoOn or Interrupted; so do the two below.
  virtual void open() = 0;
  // Once, after `open`: measures the processors where rows need them. Nothing else may run on them meanwhile.
  virtual const DeviceReport& measure_host() = 0;
  virtual Record run(const SweepRow& row) = 0;
  // No further row comes. Waits for nothing, so that several executors end at once; their destructors wait.
  virtual void end() {}
};

// Every row in a worker, reused from row to row and replaced when it dies or hangs. Never opens a GPU itself.
class WorkerExecutor : public RowExecutor {
 public:
  WorkerExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer);

  void begin_open() override;
  void open() override;
  const DeviceReport& measure_host() override;
  Record run(const SweepRow& row) override;
  void end() override;

 private:
  enum class Wait { message, gone, timeout };
  Wait wait(Deadline& deadline, Json& message);  // throws Interrupted
  bool await_hello(std::string& why);            // false, with the reason: the worker is gone
  std::optional<Record> try_row(const SweepRow& row, std::string& why);
  Record await_result(const SweepRow& row);

  SessionConfig config_;
  const InterruptGuard& interrupt_;
  RunObserver& observer_;
  std::unique_ptr<WorkerProcess> worker_;
  DeviceReport report_;  // of the worker; `config_.known` once it is complete
  std::string phase_;
};

class InProcessExecutor : public RowExecutor {
 public:
  InProcessExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer);

  void open() override;
  const DeviceReport& measure_host() override;
  Record run(const SweepRow& row) override;

 private:
  SessionConfig config_;
  const InterruptGuard& interrupt_;
  RunObserver& observer_;
  std::unique_ptr<Session> session_;
  bool device_lost_ = false;
};

}  // namespace inferometer
