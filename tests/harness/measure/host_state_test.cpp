#include "harness/measure/host_state.hpp"

#include "tests/harness/run/child_run.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

void put(const ScratchFolder& root, const std::string& name, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(root / name).parent_path());
  write_text(root / name, text);
}

}  // namespace

TEST_CASE("host state: reads governor, load and quota where the system tells them", "[measure][doctor]") {
  const ScratchFolder root;
  put(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put(root, "proc/loadavg", "1.25 0.50 0.10 2/300 4711\n");
  put(root, "sys/fs/cgroup/cpu.max", "150000 100000\n");
  const HostState state = read_host_state(root / "");
  CHECK(state.governor == "powersave");
  CHECK(state.load_average == 1.25);
  CHECK(state.processor_quota == 1.5);
  put(root, "sys/fs/cgroup/cpu.max", "max 100000\n");
  CHECK_FALSE(read_host_state(root / "").processor_quota);
}

TEST_CASE("host state: what the system does not tell is absent", "[measure][doctor]") {
  const ScratchFolder root;
  const HostState state = read_host_state(root / "");
  CHECK_FALSE(state.governor);
  CHECK_FALSE(state.load_average);
  CHECK_FALSE(state.processor_quota);
}
