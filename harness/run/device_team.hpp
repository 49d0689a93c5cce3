// The devices at work on one sweep, an executor for each.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "harness/run/row_executor.hpp"

namespace inferometer {

// Rows go to whichever device is free: any of them must do. `devices` are the GPU ordinals of `reports`. Throws
// OutputError where some have no GPU and others do, or GPUs are of several models.
void refuse_uneven(const std::vector<int>& devices, const std::vector<DeviceReport>& reports);

class DeviceTeam {
 public:
  // Rows that one device runs, in this order.
  using Group = std::vector<const SweepRow*>;

  // Told of each row as it begins and ends, by one device at a time.
  struct Callbacks {
    std::function<void(const SweepRow& row)> started;
    std::function<void(const SweepRow& row, const DeviceReport& device, Record record)> finished;
  };

  // At least one.
  explicit DeviceTeam(std::vector<std::unique_ptr<RowExecutor>> executors);
  ~DeviceTeam();  // ends all at once
  DeviceTeam(const DeviceTeam&) = delete;
  DeviceTeam& operator=(const DeviceTeam&) = delete;

  // Opens and measures all GPUs at once, as their rows will run. Throws CannotGoOn or Interrupted; so do the others.
  void open();

  // Then, with the GPUs idle: what the processors can do.
  std::vector<DeviceReport> measure_host();

  // All groups, each on the device that is free first. A device that can run no more leaves its rows to the others;
  // CannotGoOn is thrown once none is left. What `finished` throws ends the work of all.
  void run(std::deque<Group> groups, const Callbacks& callbacks);

  // On the first device, while the others are idle.
  void run_alone(Group group, const Callbacks& callbacks);

 private:
  struct Member {
    std::unique_ptr<RowExecutor> executor;
    DeviceReport report;
    bool fit = true;  // no CannotGoOn so far
    std::exception_ptr failure = nullptr;
  };

  void work(Member& member, const Callbacks& callbacks);
  void work_guarded(Member& member, const Callbacks& callbacks);
  void work_together(const Callbacks& callbacks);
  template <class Call>
  void or_stop(const Call& call);
  std::optional<Group> next_group();
  void rethrow_failures();

  std::vector<Member> members_;
  std::mutex mutex_;  // of the following, and around the callbacks
  std::deque<Group> groups_;
  bool stopped_ = false;
};

}  // namespace inferometer
