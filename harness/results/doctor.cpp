#include "harness/results/doctor.hpp"

#include <algorithm>

#include "harness/results/doctor_events.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr double kWorthless = 0.1;         // hides what people choose between: block sizes, bit widths, libraries
constexpr double kBusyLoad = 0.5;          // processes that want a processor, before we do
constexpr int kHotCelsius = 85;            // data-centre cards slow down from about 87 on
constexpr double kCopyError = 0.05;        // the ceilings are good to this much: a copy may look faster by it
constexpr double kMemsetInflation = 0.02;  // below this the two ways to clear are the same

class Findings {
 public:
  void good(std::string topic, std::string sentence) { add(Severity::good, std::move(topic), std::move(sentence)); }
  void advise(std::string topic, std::string sentence) { add(Severity::advice, std::move(topic), std::move(sentence)); }
  void fault(std::string topic, std::string sentence) { add(Severity::fault, std::move(topic), std::move(sentence)); }
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  void of(std::string device) { device_ = std::move(device); }  // of those that follow
  std::vector<Finding> take() { return std::move(all_); }

 private:
  void add(Severity severity, std::string topic, std::string sentence) {
    all_.push_back(
        {.severity = severity, .topic = std::move(topic), .sentence = std::move(sentence), .device = device_});
  }
  std::string device_;
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
  } else if (noise.repeat_ratio > kLoudNoise) {
    found.advise(device + " noise", spread +
                                        "; smaller differences between rows mean nothing here, and compare takes "
                                        "them for noise");
  } else {
    found.good(device + " noise", spread);
  }
}

// What the harness does wrong, unless the device was too noisy for such a charge.
void charge(Findings& found, std::string topic, std::string sentence, CacheVerdict verdict) {
  if (verdict == CacheVerdict::fails) return found.fault(std::move(topic), std::move(sentence));
  found.advise(std::move(topic), sentence + ", or other programs disturbed the check: repeat it on an idle machine");
}

void look_at_cache(Findings& found, const std::string& device, const Examination& measured) {
  const std::string clear = device + " cache clear";
  const std::string rotation = device + " rotation";
  const CacheVerdicts verdicts = judge_cache(measured);
  if (verdicts.clear == CacheVerdict::unchecked)
    return found.advise(clear, "not checked: " + (measured.cache ? std::string("the rate of memory is not known")
                                                                 : measured.cache_absent));
  const CacheCheck& check = *measured.cache;
  const std::string size = shown_bytes(static_cast<double>(check.read_bytes));
  if (verdicts.clear == CacheVerdict::works) {
    found.good(clear, "a read of " + size + " takes " + shown_time(check.cold_ns) + " after clearing, " +
                          shown_time(check.warm_ns) + " without: no faster than memory delivers");
  } else if (verdicts.clear == CacheVerdict::unclear) {
    found.advise(clear, "a read of " + size + " takes " + shown_time(check.cold_ns) + " after clearing and " +
                            shown_time(check.warm_ns) + " without: too near each other to tell whether clearing works");
  } else if (!verdicts.as_warm) {
    charge(found, clear,
           "a read of " + size + " after clearing runs at " + formatted("%.2f", verdicts.cold_rate) +
               " times the rate of memory: part of it came from the cache, and cold rows are warmer than they say",
           verdicts.clear);
  } else {
    charge(found, clear,
           "a read of " + size + " takes " + shown_time(check.cold_ns) + " after clearing and " +
               shown_time(check.warm_ns) + " without, though reads that rotate over buffers show the cache faster (" +
               shown_time(*check.rotated_ns) + ", of one " + shown_time(*check.repeated_ns) +
               "): clearing leaves the data there, and cold rows are warmer than they say",
           verdicts.clear);
  }
  if (verdicts.rotation == CacheVerdict::unchecked) {
    found.advise(rotation, "not checked: two turns over the buffers take too long");
  } else if (verdicts.rotation == CacheVerdict::works || verdicts.rotation == CacheVerdict::unclear) {
    const std::string times = "reads that rotate over " + std::to_string(check.input_sets) + " buffers take " +
                              shown_time(*check.rotated_ns) + " each, reads of one " +
                              (check.repeated_ns ? shown_time(*check.repeated_ns) : "an unknown time");
    if (verdicts.rotation == CacheVerdict::works)
      found.good(rotation, times);
    else
      found.advise(rotation, times + ": too near each other to tell whether rotation misses the cache");
  } else {
    charge(found, rotation,
           "reads that rotate over " + std::to_string(check.input_sets) + " buffers run at " +
               formatted("%.2f", verdicts.rotated_rate) +
               " times the rate of memory: they find each other's data in the cache, and amortized rows are warmer "
               "than they say",
           verdicts.rotation);
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

void look_at_gpu_state(Findings& found, const std::optional<GpuState>& at_rest,
                       const std::optional<GpuState>& after_ceilings) {
  if (!at_rest)
    return found.advise("GPU state",
                        "libnvidia-ml.so.1 cannot be used: clocks, power, heat and other programs on the "
                        "GPU are not known; it comes with the driver");
  const GpuState& rest = *at_rest;
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
  if (after_ceilings)
    limits.insert(limits.end(), after_ceilings->clock_limits.begin(), after_ceilings->clock_limits.end());
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  std::string text;
  for (const std::string& limit : limits) text += (text.empty() ? "" : ", ") + limit;
  if (limits.empty()) {
    found.good("GPU clocks",
               std::string("nothing held them back, at rest") + (after_ceilings ? " or after matrix products" : ""));
  } else {
    found.advise("GPU clocks",
                 text +
                     ": large rows run at a clock that moves; compare them side by side in one run, or lock "
                     "the clock with 'nvidia-smi -lgc'");
  }
}

void look_at_device(Findings& found, const std::string& device, const Examination& measured) {
  look_at_noise(found, device, measured.noise);
  look_at_ceilings(found, device, measured.ceilings);
  look_at_cache(found, device, measured);
}

}  // namespace

std::vector<Finding> findings(const Diagnosis& diagnosis) {
  Findings found;
  look_at_host(found, diagnosis.host_state);
  look_at_device(found, "CPU", diagnosis.cpu);
  if (!diagnosis.gpu_measured) {
    found.advise("GPU", diagnosis.gpu_absent + "; CUDA variants are unsupported, CPU variants run");
    return found.take();
  }
  look_at_gpu_state(found, diagnosis.gpu_at_rest, diagnosis.gpu_after_ceilings);
  look_at_device(found, "GPU", *diagnosis.gpu_measured);
  found.add(event_cost_finding(diagnosis));
  return found.take();
}

std::vector<Finding> findings(const DeviceReport& report) {
  Findings found;
  found.of("cpu");
  look_at_host(found, report.at_start.host);
  for (const ExaminedDevice& one : examined_devices(report)) {
    found.of(one.device);
    if (one.is_gpu) look_at_gpu_state(found, report.at_start.gpu, report.gpu_after_ceilings);
    look_at_device(found, one.is_gpu ? "GPU" : "CPU", one.measured);
  }
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
