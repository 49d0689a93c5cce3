#include "harness/results/doctor.hpp"

#include <algorithm>

#include "harness/results/doctor_events.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr double kLoud = 0.02;             // repeats that differ by more hide most optimisations
constexpr double kWorthless = 0.1;         // hides what people choose between: block sizes, bit widths, libraries
constexpr double kBusyLoad = 0.5;          // processes that want a processor, before we do
constexpr int kHotCelsius = 85;            // data-centre cards slow down from about 87 on
constexpr double kCeilingError = 1.1;      // a read this far above what memory delivers came from the cache
constexpr double kWarmGain = 1.1;          // a warm read less than this faster than a cold one tells nothing
constexpr double kCopyError = 0.05;        // the ceilings are good to this much: a copy may look faster by it
constexpr double kMemsetInflation = 0.02;  // below this the two ways to clear are the same

class Findings {
 public:
  void good(std::string topic, std::string sentence) { add(Severity::good, std::move(topic), std::move(sentence)); }
  void advise(std::string topic, std::string sentence) { add(Severity::advice, std::move(topic), std::move(sentence)); }
  void fault(std::string topic, std::string sentence) { add(Severity::fault, std::move(topic), std::move(sentence)); }
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  std::vector<Finding> take() { return std::move(all_); }

 private:
  void add(Severity severity, std::string topic, std::string sentence) {
    all_.push_back({.severity = severity, .topic = std::move(topic), .sentence = std::move(sentence)});
  }
  std::vector<Finding> all_;
};

std::string percent(double ratio) { return formatted("%.1f %%", 100 * ratio); }

void look_at_host(Findings& found, const HostState& host) {
  if (!host.governor) {
    found.good("CPU governor",
               "the system names none, as on most virtual machines; the CPU's clock is not in our hands");
  } else if (*host.governor == "performance") {
    found.good("CPU governor", "performance: the CPU's clock does not wait for load");
  } else {
    found.advise("CPU governor", *host.governor +
                                     ": the CPU's clock follows the load, and short CPU rows with it; set it with "
                                     "'cpupower frequency-set -g performance'");
  }
  if (host.load_average && *host.load_average > kBusyLoad) {
    found.advise("CPU load",
                 formatted("%.1f", *host.load_average) +
                     " processes wanted a processor in the last minute; CPU rows share it with them, so wait "
                     "until they are through");
  }
}

void look_at_noise(Findings& found, const std::string& device, const Noise& noise) {
  const std::string spread = "medians of the same work differ by " + percent(noise.repeat_ratio);
  if (noise.repeat_ratio > kWorthless) {
    found.fault(device + " noise", spread +
                                       ": rows timed on this device now tell next to nothing apart; end what else "
                                       "uses it, then ask again");
  } else if (noise.repeat_ratio > kLoud) {
    found.advise(device + " noise", spread +
                                        "; smaller differences between rows mean nothing here, and compare takes "
                                        "them for noise");
  } else {
    found.good(device + " noise", spread);
  }
}

// What the harness does wrong, unless the device is too noisy for such a charge.
void charge(Findings& found, std::string topic, std::string sentence, const Noise& noise) {
  if (noise.repeat_ratio <= kLoud) return found.fault(std::move(topic), std::move(sentence));
  found.advise(std::move(topic), sentence + ", or other programs disturbed the check: repeat it on an idle machine");
}

// Rate of a read as a multiple of what memory delivers. What a launch costs without any work is no part of the read.
double over_memory(const CacheCheck& check, double ns, double overhead_ns, double memory_bytes_per_s) {
  const double seconds = std::max(ns - overhead_ns, 1.0) * 1e-9;
  return static_cast<double>(check.read_bytes) / seconds / memory_bytes_per_s;
}

void look_at_cache(Findings& found, const std::string& device, const Examination& measured) {
  const std::string clear = device + " cache clear";
  const std::string rotation = device + " rotation";
  if (!measured.cache) return found.advise(clear, "not checked: " + measured.cache_absent);
  const CacheCheck& check = *measured.cache;
  const double memory = measured.ceilings.read_bytes_per_s.value_or(0);
  if (memory <= 0) return found.advise(clear, "not checked: the rate of memory is not known");
  const double overhead = measured.noise.empty_launch_ns;
  const std::string size = shown_bytes(static_cast<double>(check.read_bytes));
  const double cold = over_memory(check, check.cold_ns, overhead, memory);
  if (cold > kCeilingError) {
    charge(found, clear,
           "a read of " + size + " after clearing runs at " + formatted("%.2f", cold) +
               " times the rate of memory: part of it came from the cache, and cold rows are warmer than "
               "they say",
           measured.noise);
  } else if (check.cold_ns < kWarmGain * check.warm_ns) {
    found.advise(clear, "a read of " + size + " takes " + shown_time(check.cold_ns) + " after clearing and " +
                            shown_time(check.warm_ns) + " without: too near each other to tell whether clearing works");
  } else {
    found.good(clear, "a read of " + size + " takes " + shown_time(check.cold_ns) + " after clearing, " +
                          shown_time(check.warm_ns) + " without; none of it came from the cache");
  }
  if (!check.rotated_ns) return found.advise(rotation, "not checked: two turns over the buffers take too long");
  if (const double rotated = over_memory(check, *check.rotated_ns, 0, memory); rotated > kCeilingError) {
    charge(found, rotation,
           "reads that rotate over " + std::to_string(check.input_sets) + " buffers run at " +
               formatted("%.2f", rotated) +
               " times the rate of memory: they find each other's data in the cache, and amortized rows "
               "are warmer than they say",
           measured.noise);
  } else {
    found.good(rotation, "reads that rotate over " + std::to_string(check.input_sets) + " buffers take " +
                             shown_time(*check.rotated_ns) + " each, reads of one " +
                             (check.repeated_ns ? shown_time(*check.repeated_ns) : "an unknown time"));
  }
  if (!check.after_memset_ns || !check.after_reading_ns) return;
  const double inflation = *check.after_memset_ns / *check.after_reading_ns - 1;
  found.good(device + " memset", inflation > kMemsetInflation
                                     ? "harnesses that clear the L2 with a memset would show a read of its size " +
                                           percent(inflation) + " too slow here; rows are cleared by reading"
                                     : "clearing the L2 with a memset would show a read of its size the same here");
}

// Writing adds work to reading: what reads slower than it copies was disturbed while it read.
void look_at_ceilings(Findings& found, const std::string& device, const Ceilings& ceilings) {
  if (!ceilings.read_bytes_per_s || !ceilings.copy_bytes_per_s) return;
  const std::string topic = device + " memory ceiling";
  constexpr double kGiga = 1e9;
  const std::string rates = formatted("reads at %.3g GB/s", *ceilings.read_bytes_per_s / kGiga) +
                            formatted(", copies at %.3g GB/s", *ceilings.copy_bytes_per_s / kGiga);
  if (*ceilings.read_bytes_per_s < (1 - kCopyError) * *ceilings.copy_bytes_per_s) {
    found.advise(topic, rates +
                            ": reading is slower than copying: the memory ceiling is not to be believed, nor shares "
                            "of it; others on this machine take its bandwidth, so wait until they are through");
  } else {
    found.good(topic, rates);
  }
}

void look_at_gpu_state(Findings& found, const Diagnosis& diagnosis) {
  if (!diagnosis.gpu_at_rest)
    return found.advise("GPU state",
                        "libnvidia-ml.so.1 cannot be used: clocks, power, heat and other programs on the "
                        "GPU are not known; it comes with the driver");
  const GpuState& rest = *diagnosis.gpu_at_rest;
  if (rest.persistence && !*rest.persistence) {
    found.advise("GPU persistence",
                 "off: the driver unloads between programs, and each start takes seconds more; turn "
                 "it on with 'nvidia-smi -pm 1'");
  } else if (rest.persistence) {
    found.good("GPU persistence", "on");
  }
  if (rest.other_processes.value_or(0) > 0) {
    found.advise("GPU sharing", "other processes that compute on this GPU: " + std::to_string(*rest.other_processes) +
                                    "; every row shares it with them, so end them or take another GPU with --device");
  } else if (rest.other_processes) {
    found.good("GPU sharing", "no other process computes on it");
  }
  if (rest.temperature_c.value_or(0) >= kHotCelsius)
    found.advise("GPU heat", std::to_string(*rest.temperature_c) +
                                 " degrees C before anything ran: it will slow down; let it cool, or look at its fans");
  std::vector<std::string> limits = rest.clock_limits;
  if (diagnosis.gpu_after_ceilings)
    limits.insert(limits.end(), diagnosis.gpu_after_ceilings->clock_limits.begin(),
                  diagnosis.gpu_after_ceilings->clock_limits.end());
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::string text;
  for (const std::string& limit : limits) text += (text.empty() ? "" : ", ") + limit;
  if (limits.empty()) {
    found.good("GPU clocks", "nothing held them back, at rest or after matrix products");
  } else {
    found.advise("GPU clocks",
                 text +
                     ": large rows run at a clock that moves; compare them side by side in one run, or lock "
                     "the clock with 'nvidia-smi -lgc'");
  }
}

}  // namespace

std::vector<Finding> findings(const Diagnosis& diagnosis) {
  Findings found;
  look_at_host(found, diagnosis.host_state);
  look_at_noise(found, "CPU", diagnosis.cpu.noise);
  look_at_ceilings(found, "CPU", diagnosis.cpu.ceilings);
  look_at_cache(found, "CPU", diagnosis.cpu);
  if (!diagnosis.gpu_measured) {
    found.advise("GPU", diagnosis.gpu_absent + "; CUDA variants are unsupported, CPU variants run");
    return found.take();
  }
  look_at_gpu_state(found, diagnosis);
  look_at_noise(found, "GPU", diagnosis.gpu_measured->noise);
  found.add(event_cost_finding(diagnosis));
  look_at_ceilings(found, "GPU", diagnosis.gpu_measured->ceilings);
  look_at_cache(found, "GPU", *diagnosis.gpu_measured);
  return found.take();
}

int exit_code(const std::vector<Finding>& findings) {
  const bool fault =
      std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.severity == Severity::fault; });
  return fault ? 1 : 0;
}

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::good: return "good";
    case Severity::advice: return "advice";
    case Severity::fault: return "fault";
  }
  return "?";
}

}  // namespace inferometer
