#include "harness/run/device_team.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "harness/run/journal.hpp"

namespace inferometer {

void refuse_uneven(const std::vector<int>& devices, const std::vector<DeviceReport>& reports) {
  const auto opened =
      std::find_if(reports.begin(), reports.end(), [](const DeviceReport& report) { return report.gpu.has_value(); });
  if (opened == reports.end()) return;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const std::string device = "--devices: GPU " + std::to_string(devices[i]);
    if (!reports[i].gpu) throw OutputError(device + " cannot be used: " + reports[i].gpu_absent);
    if (reports[i].gpu->name != opened->gpu->name)
      throw OutputError(device + " is a " + reports[i].gpu->name + ", another one a " + opened->gpu->name +
                        "; run a sweep on each, into a file of its own");
  }
}

DeviceTeam::DeviceTeam(std::vector<std::unique_ptr<RowExecutor>> executors) {
  for (auto& executor : executors) members_.push_back({.executor = std::move(executor), .report = {}});
}

DeviceTeam::~DeviceTeam() {
  for (const Member& member : members_) member.executor->end();
}

void DeviceTeam::open() {
  for (const Member& member : members_) member.executor->begin_open();
  for (const Member& member : members_) member.executor->open();
}

std::vector<DeviceReport> DeviceTeam::measure_host() {
  std::vector<DeviceReport> reports;
  for (Member& member : members_) {
    member.report = member.executor->measure_host();
    reports.push_back(member.report);
  }
  return reports;
}

void DeviceTeam::run(std::deque<Group> groups, const Callbacks& callbacks) {
  groups_ = std::move(groups);
  stopped_ = false;
  if (members_.size() == 1) return work(members_.front(), callbacks);
  // Again where a device gave rows back that the others, already through, could still take.
  while (!groups_.empty() && std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.fit; })) {
    work_together(callbacks);
    rethrow_failures();
  }
  if (groups_.empty()) return;
  for (const Member& member : members_)
    if (member.failure) std::rethrow_exception(member.failure);
}

void DeviceTeam::run_alone(Group group, const Callbacks& callbacks) {
  if (group.empty()) return;
  groups_ = {std::move(group)};
  stopped_ = false;
  work(members_.front(), callbacks);
}

void DeviceTeam::work_together(const Callbacks& callbacks) {
  std::vector<std::thread> threads;
  for (Member& member : members_)
    if (member.fit) threads.emplace_back([&] { work_guarded(member, callbacks); });
  for (std::thread& thread : threads) thread.join();
}

void DeviceTeam::work_guarded(Member& member, const Callbacks& callbacks) {
  try {
    work(member, callbacks);
  } catch (const CannotGoOn&) {
    member.fit = false;
    member.failure = std::current_exception();
  } catch (...) {  // for the thread that waits: rethrow_failures
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    member.failure = std::current_exception();
  }
}

// What ended the work of all.
void DeviceTeam::rethrow_failures() {
  for (const Member& member : members_)
    if (member.failure && member.fit) std::rethrow_exception(member.failure);
}

std::optional<DeviceTeam::Group> DeviceTeam::next_group() {
  const std::lock_guard lock(mutex_);
  if (stopped_ || groups_.empty()) return std::nullopt;
  Group group = std::move(groups_.front());
  groups_.pop_front();
  return group;
}

// Calls, with the lock held. What is thrown stops the team before another member has the lock.
template <class Call>
void DeviceTeam::or_stop(const Call& call) {
  try {
    call();
  } catch (...) {
    stopped_ = true;
    throw;
  }
}

void DeviceTeam::work(Member& member, const Callbacks& callbacks) {
  while (const auto group = next_group()) {
    for (auto row = group->begin(); row != group->end(); ++row) {
      {
        const std::lock_guard lock(mutex_);
        if (stopped_) return;
        or_stop([&] { callbacks.started(**row); });
      }
      Record record;
      try {
        record = member.executor->run(**row);
      } catch (const CannotGoOn&) {
        const std::lock_guard lock(mutex_);
        groups_.emplace_front(row, group->end());
        throw;
      }
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
      or_stop([&] { callbacks.finished(**row, member.report, std::move(record)); });
    }
  }
}

}  // namespace inferometer
