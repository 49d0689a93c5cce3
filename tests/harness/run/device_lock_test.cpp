#include "harness/run/device_lock.hpp"

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

TEST_CASE("device lock: is taken by one holder at a time, a device each", "[run][devices]") {
  const ScratchFolder folder;
  setenv("TMPDIR", (folder / "").c_str(), 1);
  {
    const DeviceLock first("GPU-1/../x");
    CHECK_FALSE(first.taken_by_another());
    CHECK(DeviceLock("GPU-1/../x").taken_by_another());
    CHECK_FALSE(DeviceLock("GPU-2").taken_by_another());
  }
  CHECK_FALSE(DeviceLock("GPU-1/../x").taken_by_another());
  unsetenv("TMPDIR");
}

TEST_CASE("device lock: where no lock can be made there is no warning", "[run][devices]") {
  setenv("TMPDIR", "/nowhere", 1);
  const DeviceLock first("GPU-1");
  CHECK_FALSE(DeviceLock("GPU-1").taken_by_another());
  unsetenv("TMPDIR");
  CHECK_FALSE(std::filesystem::exists("inferometer-GPU-1.lock"));  // nor does one come to lie elsewhere
}

TEST_CASE("run: two runs at once on one device are warned, and both go on", "[run][devices]") {
  const ScratchFolder folder;
  const auto own_locks = [&] { setenv("TMPDIR", (folder / "").c_str(), 1); };
  Gate gate;
  ChildRun first(gated_sweep(), {.output = folder / "first.json"}, own_locks);
  ChildRun::wait_until([&] { return journal_rows(folder / "first.jsonl").size() == kRowsBeforeGate; });
  const ChildResult second = run_in_child(copy_sweep({{"cpu.right"}}), {.output = folder / "second.json"}, own_locks);
  CHECK(second.ended_well());
  CHECK(second.err.find("another run measures on cpu at this moment") != std::string::npos);
  gate.open();
  const ChildResult result = first.wait();
  CHECK(result.ended_well());
  CHECK(result.err.find("another run measures") == std::string::npos);
}
