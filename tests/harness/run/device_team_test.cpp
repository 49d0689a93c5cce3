#include "harness/run/device_team.hpp"

#include <atomic>
#include <condition_variable>
#include <set>

#include "harness/results/status.hpp"
#include "harness/run/journal.hpp"
#include "harness/run/row_record.hpp"
#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Each row waits until as many others run as there are devices: none would end if one ran after the other.
class Rendezvous {
 public:
  explicit Rendezvous(int devices) : devices_(devices) {}
  bool meet() {
    std::unique_lock lock(mutex_);
    if (++here_ % devices_ == 0) all_here_.notify_all();
    const int round = (here_ + devices_ - 1) / devices_;
    return all_here_.wait_for(lock, std::chrono::minutes(10), [&] { return here_ >= round * devices_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_here_;
  int devices_;
  int here_ = 0;
};

class FakeExecutor : public RowExecutor {
 public:
  using Row = std::function<Record(const SweepRow&)>;
  FakeExecutor(std::string uuid, Row row) : row_(std::move(row)) {
    report_.gpu.emplace();
    report_.gpu->uuid = std::move(uuid);
  }
  void open() override {}
  const DeviceReport& measure_host() override { return report_; }
  Record run(const SweepRow& row) override { return row_(row); }

 private:
  DeviceReport report_;
  Row row_;
};

DeviceTeam team_of(std::vector<FakeExecutor::Row> rows) {
  std::vector<std::unique_ptr<RowExecutor>> executors;
  for (std::size_t i = 0; i < rows.size(); ++i)
    executors.push_back(std::make_unique<FakeExecutor>("GPU-" + std::to_string(i), rows[i]));
  return DeviceTeam(std::move(executors));
}

void start(DeviceTeam& team) {
  team.open();
  team.measure_host();
}

std::deque<DeviceTeam::Group> single_rows(const Sweep& sweep) {
  std::deque<DeviceTeam::Group> groups;
  for (const SweepRow& row : sweep.rows) groups.push_back({&row});
  return groups;
}

// What a team did: row -> devices that ran it.
struct Log {
  std::map<std::string, std::vector<std::string>> ran;
  DeviceTeam::Callbacks callbacks() {
    return {.started = [](const SweepRow&) {},
            .finished = [this](const SweepRow& row, const DeviceReport& device,
                               const Record&) { ran[row.id].push_back(device.gpu ? device.gpu->uuid : "cpu"); }};
  }
};

class Silent : public RunObserver {
 public:
  void phase(std::string_view /*name*/) override {}
  void output(const std::string& /*line*/) override {}
  void replaced(const std::string& why) override { told.push_back(why); }
  void tick() override {}
  std::vector<std::string> told;
};

pid_t process_of(const Record& record) {
  for (const Metric& metric : record.metrics)
    if (metric.name == "process") return static_cast<pid_t>(metric.value);
  FAIL("no metric process: " << record.reason);
  return 0;
}

}  // namespace

TEST_CASE("device team: all GPUs are opened at once, and the processors measured once that is done", "[run][devices]") {
  class Opening : public RowExecutor {
   public:
    Opening(std::string name, std::vector<std::string>& events) : name_(std::move(name)), events_(events) {}
    void begin_open() override { events_.push_back("begin " + name_); }
    void open() override { events_.push_back("open " + name_); }
    const DeviceReport& measure_host() override {
      events_.push_back("host " + name_);
      return report_;
    }
    Record run(const SweepRow& row) override { return row_record(row, Status::ok); }
    void end() override { events_.push_back("end " + name_); }

   private:
    std::string name_;
    std::vector<std::string>& events_;
    DeviceReport report_;
  };
  std::vector<std::string> events;
  {
    std::vector<std::unique_ptr<RowExecutor>> executors;
    for (const char* name : {"0", "1"}) executors.push_back(std::make_unique<Opening>(name, events));
    DeviceTeam team(std::move(executors));
    start(team);
  }
  CHECK(events ==
        std::vector<std::string>{"begin 0", "begin 1", "open 0", "open 1", "host 0", "host 1", "end 0", "end 1"});
}

TEST_CASE("device team: rows that run alone run on one device, one after the other", "[run][devices]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(6));
  std::atomic<int> running = 0;
  std::atomic<bool> together = false;
  const auto row = [&](const SweepRow& one) {
    if (++running > 1) together = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --running;
    return row_record(one, Status::ok);
  };
  DeviceTeam team = team_of({row, row});
  start(team);
  Log log;
  DeviceTeam::Group group;
  for (const SweepRow& one : sweep.rows) group.push_back(&one);
  team.run_alone(group, log.callbacks());
  CHECK_FALSE(together);
  REQUIRE(log.ran.size() == 6);
  for (const auto& [id, by] : log.ran) CHECK(by == std::vector<std::string>{"GPU-0"});
}

TEST_CASE("device team: rows run side by side, each once", "[run][devices]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(8));
  Rendezvous rendezvous(2);
  std::atomic<int> alone = 0;
  const auto meeting = [&](const SweepRow& row) {
    if (!rendezvous.meet()) ++alone;
    return row_record(row, Status::ok);
  };
  DeviceTeam team = team_of({meeting, meeting});
  start(team);
  Log log;
  team.run(single_rows(sweep), log.callbacks());
  CHECK(alone == 0);
  REQUIRE(log.ran.size() == 8);
  std::set<std::string> devices;
  for (const auto& [id, by] : log.ran) {
    CHECK(by.size() == 1);
    devices.insert(by.begin(), by.end());
  }
  CHECK(devices == std::set<std::string>{"GPU-0", "GPU-1"});
}

TEST_CASE("device team: a group stays on one device, in its order", "[run][devices]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(12));
  std::deque<DeviceTeam::Group> groups(4);
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) groups[i / 3].push_back(&sweep.rows[i]);
  const auto right = [](const SweepRow& row) { return row_record(row, Status::ok); };
  DeviceTeam team = team_of({right, right, right});
  start(team);
  Log log;
  team.run(groups, log.callbacks());
  for (std::size_t i = 0; i < sweep.rows.size(); ++i)
    CHECK(log.ran.at(sweep.rows[i].id) == log.ran.at(sweep.rows[i / 3 * 3].id));
}

TEST_CASE("device team: a device that can run no more leaves its rows to the others", "[run][devices]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(6));
  const auto right = [](const SweepRow& row) { return row_record(row, Status::ok); };
  const auto lost = [](const SweepRow&) -> Record { throw CannotGoOn("the GPU is lost"); };
  Log log;
  DeviceTeam team = team_of({lost, right});
  start(team);
  team.run(single_rows(sweep), log.callbacks());
  CHECK(log.ran.size() == 6);
  for (const auto& [id, by] : log.ran) CHECK(by == std::vector<std::string>{"GPU-1"});

  DeviceTeam hopeless = team_of({lost, lost});
  start(hopeless);
  CHECK_THROWS_WITH(hopeless.run(single_rows(sweep), log.callbacks()), contains_text("the GPU is lost"));
}

TEST_CASE("device team: what saving a row throws ends the work of all", "[run][devices]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(50));
  const auto right = [](const SweepRow& row) { return row_record(row, Status::ok); };
  // Again and again, with others that wait to save theirs.
  for (int repeat = 0; repeat < 100; ++repeat) {
    DeviceTeam team = team_of(std::vector(8, std::function<Record(const SweepRow&)>(right)));
    start(team);
    int finished = 0;
    const DeviceTeam::Callbacks callbacks{.started = [](const SweepRow&) {},
                                          .finished =
                                              [&](const SweepRow&, const DeviceReport&, const Record&) {
                                                if (++finished < 3) return;
                                                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                                throw std::runtime_error("disk full");
                                              }};
    CHECK_THROWS_WITH(team.run(single_rows(sweep), callbacks), contains_text("disk full"));
    REQUIRE(finished == 3);
  }
}

TEST_CASE("device team: two workers on the CPU share the rows, and a crash costs its row alone",
          "[run][devices][worker]") {
  std::vector<CopyRow> rows(10, CopyRow{.sleep_ms = 2});
  rows[4].variant = "cpu.aborts";
  const Sweep sweep = copy_sweep(rows);
  const InterruptGuard interrupt;
  Silent observer;
  std::vector<std::unique_ptr<RowExecutor>> executors;
  for (int device = 0; device < 2; ++device)
    executors.push_back(std::make_unique<WorkerExecutor>(session_config(sweep, 1, device), interrupt, observer));
  DeviceTeam team(std::move(executors));
  team.open();
  CHECK(team.measure_host().size() == 2);
  std::map<std::string, Status> statuses;
  std::set<double> processes;
  team.run(single_rows(sweep), {.started = [](const SweepRow&) {},
                                .finished =
                                    [&](const SweepRow& row, const DeviceReport&, const Record& record) {
                                      statuses[row.id] = record.status;
                                      for (const Metric& metric : record.metrics)
                                        if (metric.name == "process") processes.insert(metric.value);
                                    }});
  REQUIRE(statuses.size() == 10);
  for (const auto& [id, status] : statuses) {
    // Side by side on one CPU they may be too uncertain to be ok: suspect.
    if (id == sweep.rows[4].id) CHECK(status == Status::crashed);
    if (id != sweep.rows[4].id) CHECK(has_timing(status));
  }
  CHECK(processes.size() >= 2);
}

TEST_CASE("worker executor: the processors are measured where rows need them, by another worker if the first is gone",
          "[run][worker]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(1));
  const InterruptGuard interrupt;
  Silent observer;
  SessionConfig config = session_config(sweep, 1, 0);
  WorkerExecutor executor(config, interrupt, observer);
  config.cpu_rows = false;
  WorkerExecutor without_rows(config, interrupt, observer);
  executor.begin_open();
  without_rows.begin_open();
  executor.open();
  without_rows.open();
  CHECK_FALSE(without_rows.measure_host().cpu_ceilings.f32_flops_per_s);

  pid_t first = 0;
  REQUIRE(std::ifstream("/proc/thread-self/children") >> first);
  kill(first, SIGABRT);
  const DeviceReport report = executor.measure_host();
  CHECK(report.cpu_ceilings.f32_flops_per_s);
  CHECK(report.noise.event_resolution_ns > 0);
  REQUIRE(observer.told.size() == 1);
  CHECK_THAT(observer.told[0], contains_text("worker process killed by SIGABRT in phase start"));
  CHECK(process_of(executor.run(sweep.rows[0])) != first);
  CHECK(observer.told.size() == 1);
}

TEST_CASE("worker executor: a worker that ends between two rows costs neither, and the user is told", "[run][worker]") {
  const Sweep sweep = copy_sweep(std::vector<CopyRow>(3));
  const InterruptGuard interrupt;
  Silent observer;
  WorkerExecutor executor(session_config(sweep, 1, 0), interrupt, observer);
  executor.open();
  executor.measure_host();
  const pid_t first = process_of(executor.run(sweep.rows[0]));

  kill(first, SIGABRT);
  const Record second = executor.run(sweep.rows[1]);
  CHECK(process_of(second) != first);
  REQUIRE(observer.told.size() == 1);
  CHECK_THAT(observer.told[0], contains_text("worker process killed by SIGABRT before it began a row"));

  // It takes the row's message, and begins nothing.
  kill(process_of(second), SIGSTOP);
  std::jthread killer([&] {  // ends before this case, also where run() throws
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(process_of(second), SIGKILL);
  });
  const Record third = executor.run(sweep.rows[2]);
  killer.join();
  CHECK(has_timing(third.status));
  CHECK(process_of(third) != process_of(second));
  REQUIRE(observer.told.size() == 2);
  CHECK_THAT(observer.told[1], contains_text("killed by SIGKILL before it began a row"));
}

TEST_CASE("device team: a GPU that is missing, or of another model, is refused by its number", "[run][devices]") {
  DeviceReport h200;
  h200.gpu.emplace().name = "NVIDIA H200";
  DeviceReport a100;
  a100.gpu.emplace().name = "NVIDIA A100";
  DeviceReport none;
  none.gpu_absent = "no GPU 7: this machine has 1";
  CHECK_NOTHROW(refuse_uneven({0, 0}, {h200, h200}));
  CHECK_NOTHROW(refuse_uneven({0, 7}, {none, none}));  // rows will say why they are unsupported
  CHECK_THROWS_WITH(refuse_uneven({0, 7}, {h200, none}),
                    contains_text("GPU 7 cannot be used: no GPU 7: this machine has 1"));
  CHECK_THROWS_WITH(refuse_uneven({0, 3}, {h200, a100}), contains_text("GPU 3 is a NVIDIA A100"));
}

TEST_CASE("run: one device named twice gets every row once, and the file says where it ran", "[run][devices]") {
  const ScratchFolder folder;
  const std::string output = folder / "r.json";
  // Without a GPU the rows of cuda.right are unsupported, and so are settled by both workers side by side.
  std::vector<CopyRow> rows{{"cpu.right"}, {"cpu.chatty"}};
  for (std::int64_t n = 1; n <= 6; ++n) rows.push_back({.variant = "cuda.right", .n = n});
  Sweep sweep = copy_sweep(rows);
  for (SweepRow& row : sweep.rows) row.baseline_id.clear();
  sweep.limits.device_bytes = 1;  // nor are they run on a real GPU: the variant only says it is for one
  const ChildResult result = run_in_child(sweep, {.output = output, .devices = {0, 0}});
  INFO(result.err);
  const Json file = read_json(output);
  REQUIRE(file.at("rows").size() == sweep.rows.size());
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    CHECK(file.at("rows").at(i).at("id") == sweep.rows[i].id);
    if (i < 2) CHECK(file.at("rows").at(i).at("device") == "cpu");
    if (i < 2) CHECK(was_measured(file.at("rows").at(i)));
  }
  CHECK_FALSE(file.at("environment").contains("gpus"));  // it is one GPU, or none
  CHECK_FALSE(std::filesystem::exists(output + "l"));
}
