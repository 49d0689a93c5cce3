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
  // Opens and measures the devices. Throws CannotGoOn or Interrupted; so does run.
  virtual const DeviceReport& start() = 0;
  virtual Record run(const SweepRow& row) = 0;
};

// Every row in a worker, reused from row to row and replaced when it dies or hangs. Never opens a GPU itself.
class WorkerExecutor : public RowExecutor {
 public:
  WorkerExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer);

  const DeviceReport& start() override;
  Record run(const SweepRow& row) override;

 private:
  enum class Wait { message, gone, timeout };
  Wait wait(Deadline& deadline, Json& message);  // throws Interrupted
  bool start_worker(std::string& why);
  std::optional<Record> try_row(const SweepRow& row, std::string& why);
  Record await_result(const SweepRow& row);

  SessionConfig config_;
  const InterruptGuard& interrupt_;
  RunObserver& observer_;
  std::unique_ptr<WorkerProcess> worker_;
  std::string phase_;
};

class InProcessExecutor : public RowExecutor {
 public:
  InProcessExecutor(SessionConfig config, const InterruptGuard& interrupt, RunObserver& observer);

  const DeviceReport& start() override;
  Record run(const SweepRow& row) override;

 private:
  SessionConfig config_;
  const InterruptGuard& interrupt_;
  RunObserver& observer_;
  std::unique_ptr<Session> session_;
  bool device_lost_ = false;
};

}  // namespace inferometer
