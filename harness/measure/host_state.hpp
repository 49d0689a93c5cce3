// What the host is doing beside us, and how its clock is governed: what makes times of the CPU, and of launching, move.
#pragma once

#include <optional>
#include <string>

namespace inferometer {

struct HostState {
  std::optional<std::string> governor;    // of the first processor's frequency; none: a virtual machine does not say
  std::optional<double> load_average;     // of the last minute: processes that ran or wanted to
  std::optional<double> processor_quota;  // processors that the control group grants (version 2); none: no limit
};

// `root` prefixes /proc and /sys, for tests.
HostState read_host_state(const std::string& root = "");

}  // namespace inferometer
