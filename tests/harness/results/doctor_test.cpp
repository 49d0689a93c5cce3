#include "harness/results/doctor.hpp"

#include <algorithm>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// A machine without a fault: 1 GB/s memory, a cache twice as fast.
Examination sound() {
  Examination measured;
  measured.noise = {.repeat_ratio = 0.004, .event_resolution_ns = 32, .empty_launch_ns = 1000};
  measured.ceilings.read_bytes_per_s = 1e9;
  measured.cache = CacheCheck{.read_bytes = 1'000'000,
                              .cold_ns = 1'001'000,
                              .warm_ns = 501'000,
                              .input_sets = 5,
                              .rotated_ns = 1'000'000,
                              .repeated_ns = 500'000,
                              .after_reading_ns = std::nullopt,
                              .after_memset_ns = std::nullopt};
  return measured;
}

Diagnosis sound_machine() {
  Diagnosis diagnosis;
  diagnosis.host_state = {.governor = "performance", .load_average = 0.1, .processor_quota = std::nullopt};
  diagnosis.cpu = sound();
  diagnosis.gpu = GpuInfo{};
  diagnosis.gpu_measured = sound();
  diagnosis.gpu_measured->cache->after_reading_ns = 1'000'000;
  diagnosis.gpu_measured->cache->after_memset_ns = 1'330'000;
  diagnosis.event_cost =
      EventCost{.tool = "CUPTI 13.0", .kernels = {{.told_ns = 0, .isolated_ns = 4400, .profiler_ns = 1500}}};
  GpuState& rest = diagnosis.gpu_at_rest.emplace();
  rest.persistence = true;
  rest.temperature_c = 30;
  rest.other_processes = 0;
  return diagnosis;
}

Finding finding(const Diagnosis& diagnosis, const std::string& topic) {
  const std::vector<Finding> all = findings(diagnosis);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Finding& f) { return f.topic == topic; });
  INFO(topic);
  REQUIRE(found != all.end());
  CHECK_FALSE(found->sentence.empty());
  return *found;
}

bool says(const Finding& finding, std::string_view part) { return finding.sentence.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("doctor: a sound machine has good findings alone, and exit code 0", "[results][doctor]") {
  const std::vector<Finding> all = findings(sound_machine());
  for (const Finding& one : all) {
    INFO(one.topic << ": " << one.sentence);
    CHECK(one.severity == Severity::good);
  }
  CHECK(all.size() >= 9);
  CHECK(exit_code(all) == 0);
  CHECK(says(finding(sound_machine(), "GPU memset"), "33.0 % too slow"));
}

TEST_CASE("doctor: a clear that leaves data in the cache is a fault, though the launch hides it", "[results][doctor]") {
  Diagnosis diagnosis = sound_machine();
  // With its launch the read looks as slow as memory; without it, twice as fast.
  diagnosis.gpu_measured->noise.empty_launch_ns = 500'000;
  diagnosis.gpu_measured->cache->cold_ns = 1'000'000;
  CHECK(finding(diagnosis, "GPU cache clear").severity == Severity::fault);
  CHECK(says(finding(diagnosis, "GPU cache clear"), "2.00 times the rate of memory"));
  CHECK(exit_code(findings(diagnosis)) == 1);
}

TEST_CASE("doctor: buffers that share the cache are a fault of the rotation", "[results][doctor]") {
  Diagnosis diagnosis = sound_machine();
  diagnosis.cpu.cache->rotated_ns = 600'000;
  CHECK(finding(diagnosis, "CPU rotation").severity == Severity::fault);
  CHECK(exit_code(findings(diagnosis)) == 1);
}

TEST_CASE("doctor: a device on which the same work takes unlike times is unfit to measure on", "[results][doctor]") {
  for (const char* topic : {"CPU noise", "GPU noise"}) {
    INFO(topic);
    const auto with = [&](double ratio) {
      Diagnosis diagnosis = sound_machine();
      (topic == std::string("CPU noise") ? diagnosis.cpu : *diagnosis.gpu_measured).noise.repeat_ratio = ratio;
      return diagnosis;
    };
    CHECK(finding(with(0.05), topic).severity == Severity::advice);
    CHECK(exit_code(findings(with(0.05))) == 0);
    CHECK(finding(with(0.29), topic).severity == Severity::fault);
    CHECK(says(finding(with(0.29), topic), "differ by 29.0 %"));
    CHECK(exit_code(findings(with(0.29))) == 1);
  }
}

TEST_CASE("doctor: on a noisy device nothing is a fault of the harness", "[results][doctor]") {
  Diagnosis diagnosis = sound_machine();
  diagnosis.cpu.noise.repeat_ratio = 0.1;
  diagnosis.cpu.cache->cold_ns = 400'000;
  diagnosis.cpu.cache->rotated_ns = 400'000;
  for (const char* topic : {"CPU cache clear", "CPU rotation"}) {
    CHECK(finding(diagnosis, topic).severity == Severity::advice);
    CHECK(says(finding(diagnosis, topic), "repeat it on an idle machine"));
  }
}

TEST_CASE("doctor: memory that reads slower than it copies has no ceiling to be believed", "[results][doctor]") {
  for (const char* topic : {"CPU memory ceiling", "GPU memory ceiling"}) {
    INFO(topic);
    const auto copying_at = [&](double bytes_per_s) {
      Diagnosis diagnosis = sound_machine();
      Examination& measured = topic == std::string("CPU memory ceiling") ? diagnosis.cpu : *diagnosis.gpu_measured;
      measured.ceilings.copy_bytes_per_s = bytes_per_s;
      return diagnosis;
    };
    CHECK(finding(copying_at(0.9e9), topic).severity == Severity::good);
    CHECK(finding(copying_at(1.03e9), topic).severity == Severity::good);  // within the error of the two
    const Finding slow = finding(copying_at(1.3e9), topic);
    CHECK(slow.severity == Severity::advice);
    CHECK(says(slow, "reads at 1 GB/s, copies at 1.3 GB/s: reading is slower than copying: the memory ceiling is not"));
    CHECK(exit_code(findings(copying_at(1.3e9))) == 0);
  }
}

TEST_CASE("doctor: what cannot be told is advice, not praise", "[results][doctor]") {
  Diagnosis diagnosis = sound_machine();
  diagnosis.cpu.cache->warm_ns = diagnosis.cpu.cache->cold_ns;
  diagnosis.cpu.cache->rotated_ns.reset();
  CHECK(finding(diagnosis, "CPU cache clear").severity == Severity::advice);
  CHECK(finding(diagnosis, "CPU rotation").severity == Severity::advice);
  diagnosis.cpu.cache.reset();
  diagnosis.cpu.cache_absent = "too little memory";
  CHECK(says(finding(diagnosis, "CPU cache clear"), "too little memory"));
  CHECK(exit_code(findings(diagnosis)) == 0);
}

TEST_CASE("doctor: each state of the machine that moves times has its advice", "[results][doctor]") {
  Diagnosis diagnosis = sound_machine();
  diagnosis.host_state = {.governor = "powersave", .load_average = 3.0, .processor_quota = std::nullopt};
  diagnosis.cpu.noise.repeat_ratio = 0.08;
  diagnosis.gpu_at_rest->persistence = false;
  diagnosis.gpu_at_rest->other_processes = 2;
  diagnosis.gpu_at_rest->temperature_c = 90;
  diagnosis.gpu_after_ceilings.emplace().clock_limits = {"power_limited", "power_limited"};
  CHECK(says(finding(diagnosis, "CPU governor"), "powersave"));
  CHECK(says(finding(diagnosis, "CPU load"), "3.0 processes"));
  CHECK(says(finding(diagnosis, "CPU noise"), "8.0 %"));
  CHECK(says(finding(diagnosis, "GPU persistence"), "nvidia-smi -pm 1"));
  CHECK(says(finding(diagnosis, "GPU sharing"), "this GPU: 2;"));
  CHECK(says(finding(diagnosis, "GPU heat"), "90 degrees"));
  CHECK(finding(diagnosis, "GPU clocks").sentence.starts_with("power_limited:"));
  for (const char* topic :
       {"CPU governor", "CPU load", "CPU noise", "GPU persistence", "GPU sharing", "GPU heat", "GPU clocks"})
    CHECK(finding(diagnosis, topic).severity == Severity::advice);
}

TEST_CASE("doctor: without a GPU it says why, in text and JSON", "[results][doctor][json]") {
  Diagnosis diagnosis;
  diagnosis.cpu = sound();
  diagnosis.gpu_absent = "no usable GPU: no NVIDIA driver is loaded";
  CHECK(says(finding(diagnosis, "GPU"), "no NVIDIA driver is loaded"));
  diagnosis.cpu.noise.repeat_ratio = std::numeric_limits<double>::quiet_NaN();
  const Json json = Json::parse(diagnosis_json(diagnosis, findings(diagnosis)).dump());
  CHECK(json.at("schema") == "inferometer.doctor/1");
  CHECK(json.at("gpu").is_null());
  CHECK(json.at("gpu_measured").is_null());
  CHECK(json.at("gpu_absent") == diagnosis.gpu_absent);
  CHECK(json.at("cpu_measured").at("noise").at("repeat_ratio").is_null());
  CHECK(json.at("findings").size() == findings(diagnosis).size());
}
