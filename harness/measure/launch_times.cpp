#include "harness/measure/launch_times.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

namespace inferometer {
namespace {

using Activities = std::vector<const ActivityRecord*>;

std::vector<Activities> by_launch(const TraceRecords& records, int launches) {
  std::map<std::uint32_t, std::uint64_t> launch_of;
  for (const CallRecord& call : records.calls) launch_of[call.call] = call.launch;
  std::vector<Activities> sorted(static_cast<std::size_t>(launches));
  for (const ActivityRecord& activity : records.activities) {
    const auto launch = launch_of.find(activity.call);
    if (launch != launch_of.end() && launch->second < sorted.size()) sorted[launch->second].push_back(&activity);
  }
  return sorted;
}

void require_complete(const TraceRecords& records, const std::vector<Activities>& launches) {
  if (records.dropped > 0) throw ProfilerError("the profiler dropped " + std::to_string(records.dropped) + " records");
  for (const Activities& launch : launches) {
    if (launch.empty()) throw ProfilerError("the profiler recorded no kernel of a launch");
    if (launch.size() != launches.front().size())
      throw ProfilerError("the profiler recorded " + std::to_string(launches.front().size()) +
                          " kernels of one launch and " + std::to_string(launch.size()) + " of another");
    for (const ActivityRecord* activity : launch)
      if (activity->start_ns == 0 || activity->end_ns < activity->start_ns)
        throw ProfilerError("the profiler recorded a kernel without its times");
  }
}

double span_ns(const Activities& launch) {
  std::uint64_t start = launch.front()->start_ns;
  std::uint64_t end = launch.front()->end_ns;
  for (const ActivityRecord* activity : launch) {
    start = std::min(start, activity->start_ns);
    end = std::max(end, activity->end_ns);
  }
  return static_cast<double>(end - start);
}

// Names in the order in which they begin in the first launch.
std::vector<KernelTime> kernel_times(const std::vector<Activities>& launches) {
  std::vector<KernelTime> kernels;
  for (const Activities& launch : launches) {
    Activities ordered = launch;
    std::sort(ordered.begin(), ordered.end(),
              [](const ActivityRecord* a, const ActivityRecord* b) { return a->start_ns < b->start_ns; });
    for (const ActivityRecord* activity : ordered) {
      auto kernel =
          std::find_if(kernels.begin(), kernels.end(), [&](const KernelTime& k) { return k.name == activity->name; });
      if (kernel == kernels.end()) kernel = kernels.insert(kernel, {.name = activity->name});
      ++kernel->count;
      kernel->mean_ns += static_cast<double>(activity->end_ns - activity->start_ns);
    }
  }
  for (KernelTime& kernel : kernels) {
    kernel.mean_ns /= kernel.count;
    kernel.count /= static_cast<int>(launches.size());
  }
  return kernels;
}

}  // namespace

LaunchTimes launch_times(const TraceRecords& records, int launches) {
  const std::vector<Activities> sorted = by_launch(records, launches);
  require_complete(records, sorted);
  LaunchTimes times;
  for (const Activities& launch : sorted) times.launch_ns.push_back(span_ns(launch));
  times.kernels = kernel_times(sorted);
  return times;
}

std::string kernel_name(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  if (demangled == nullptr) return symbol;
  std::string name = demangled.get();
  const std::string anonymous = "(anonymous namespace)::";
  for (std::size_t at = name.find(anonymous); at != std::string::npos; at = name.find(anonymous))
    name.erase(at, anonymous.size());
  name.erase(std::min(name.find_first_of("<("), name.size()));
  return name.substr(name.find_last_of(" :") + 1);
}

}  // namespace inferometer
