// The parts of a report that are the same in all of them, built into the program: harness/results/html/page/, and
// Chart.js where the build found it.
#pragma once

#include <string_view>

namespace inferometer {

std::string_view report_style();   // CSS
std::string_view report_script();  // all scripts of page/, in the order in which they use each other
std::string_view chart_library();  // Chart.js 3 or newer; empty where the build had none

}  // namespace inferometer
