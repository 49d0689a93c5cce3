// The child process of nvtx_test.cpp: rows that end in every way that leaves their process alive, marked by the runner.
#include <cstdio>

#include "harness/measure/device.hpp"
#include "harness/results/status.hpp"
#include "harness/run/row_runner.hpp"

int main() {
  using namespace inferometer;
  const auto host = make_cpu_device(1);
  const DeviceReport report;
  RowRunner::Settings settings;
  settings.profiled_launches = 2;
  RowRunner runner(*host, nullptr, report, settings);
  for (const char* variant : {"cpu.right", "cpu.zeros", "cpu.throws", "cpu.throws_int", "cpu.greedy", "cpu.choosy"}) {
    SweepRow row;
    row.id = "0123456789ab";
    row.operator_name = "test_copy";
    row.variant = variant;
    row.problem = {{"n", std::int64_t{8}}};
    const Record record = runner.run(row, [](std::string_view) {}).record;
    std::printf("%s %s\n", variant, std::string(status_name(record.status)).c_str());
  }
  return 0;
}
