#include "harness/results/record_json.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "harness/results/shown_timing.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::profiled_record;
using inferometer::test::sample_record;

TEST_CASE("record: what is written comes back the same", "[results][json]") {
  const Json written = record_json(sample_record());
  const Json parsed = Json::parse(to_line(written));
  CHECK(parsed == written);
  CHECK(record_json(record_from_json(parsed)) == written);
  const Record back = record_from_json(parsed);
  CHECK(back.problem == sample_record().problem);  // types too: 1 stays an integer, true a boolean
  CHECK(back.timing->isolated.rest_seconds == 0.25);
  CHECK(back.timing->isolated.flags == sample_record().timing->isolated.flags);
  CHECK(back.memory_bytes.at("scratch") == 7);
  CHECK(back.check->passed);
}

TEST_CASE("record: what a profiler said comes back, or why there was none", "[results][json][profiler]") {
  const Json written = record_json(profiled_record());
  CHECK(record_json(record_from_json(Json::parse(to_line(written)))) == written);
  const ProfilerTiming back = *record_from_json(written).timing->profiler;
  CHECK(back.tool == "CUPTI 13.0");
  CHECK(back.samples == 120);
  CHECK(back.median_ns == 77300);
  CHECK(back.between_events_ns == 80100);
  REQUIRE(back.kernels.size() == 1);
  CHECK(back.kernels[0].count == 2);
  Record without = sample_record();
  CHECK_FALSE(record_json(without).at("timing").contains("profiler"));  // none was asked for
  without.timing->profiler_absent = "no libcupti.so.13 was found";
  const Json reason = record_json(without);
  CHECK(reason.at("timing").at("profiler_absent") == "no libcupti.so.13 was found");
  CHECK(record_json(record_from_json(reason)) == reason);
}

TEST_CASE("record: what a profiler said stands among the notes of a row", "[results][profiler]") {
  CHECK(shown_status(profiled_record()) == "ok (clock_moved, profiler 77.3 us)");
  Record without = sample_record();
  without.timing->isolated.flags.clear();
  CHECK(shown_status(without) == "ok");
  without.timing->profiler_absent = "no libcupti.so.13 was found";
  CHECK(shown_status(without) == "ok (no profiler: no libcupti.so.13 was found)");
}

TEST_CASE("record: every status comes back from its name", "[results][json]") {
  for (const char* name :
       {"ok", "incorrect", "unsupported", "out_of_memory", "crashed", "timed_out", "suspect", "error"}) {
    Json json = record_json(sample_record());
    json["status"] = name;
    CHECK(record_json(record_from_json(json)).at("status") == name);
  }
  Json json = record_json(sample_record());
  json["status"] = "good";
  CHECK_THROWS_WITH(record_from_json(json), test::contains_text("good"));
}

TEST_CASE("record: a number that is not finite becomes null, and the reason names it once", "[results][json]") {
  const double bad = GENERATE(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity());
  Record record = sample_record();
  record.metrics[0].value = bad;
  record.check->max_abs_error = bad;
  const Json json = Json::parse(to_line(record_json(record)));
  CHECK(json.at("metrics").at("tokens_per_s").is_null());
  CHECK(json.at("check").at("max_abs_error").is_null());
  CHECK(json.at("reason") ==
        "check.max_abs_error was not a finite number; metrics.tokens_per_s was not a finite number");
  const Record back = record_from_json(json);
  CHECK(std::isnan(back.metrics[0].value));
  CHECK(record_json(back) == json);
}

TEST_CASE("record: text that is not UTF-8 still makes valid JSON", "[results][json]") {
  Record record = sample_record();
  record.reason = "last lines: \xff\xfe \"quoted\"\n</script>";
  CHECK(Json::accept(to_line(record_json(record))));
  CHECK(to_line(record_json(record)).find('\n') == std::string::npos);
}

TEST_CASE("record: a count that is no whole number of its type is refused, not rounded", "[results][json]") {
  const char* const where = GENERATE("/check/outputs_checked", "/check/worst_index/0", "/timing/isolated/samples",
                                     "/timing/amortized/launches", "/memory/scratch_bytes");
  const char* const value = GENERATE("1.5", "8.8e61", "1e3", "-99999999999999999999", "true", "\"1\"", "{}");
  Json json = record_json(sample_record());
  json[Json::json_pointer(where)] = Json::parse(value);
  CAPTURE(where, value);
  CHECK_THROWS_WITH(record_from_json(json), test::contains_text("expected a whole number in range, got "));
}

TEST_CASE("record: a negative count of bytes and more samples than fit an int are refused", "[results][json]") {
  const auto [where, value] = GENERATE(std::pair("/memory/peak_bytes", std::int64_t{-1}),
                                       std::pair("/timing/isolated/samples", std::int64_t{1} << 31));
  Json json = record_json(sample_record());
  json[Json::json_pointer(where)] = value;
  CHECK_THROWS_WITH(record_from_json(json), test::contains_text("got " + std::to_string(value)));
}

TEST_CASE("record: a long measurement of short launches counts more of them than an int holds", "[results][json]") {
  Record record = sample_record();
  record.timing->amortized->launches = 3'000'000'000;
  CHECK(record_from_json(record_json(record)).timing->amortized->launches == 3'000'000'000);
}

TEST_CASE("environment: a count of threads that is no int is refused", "[results][json]") {
  Json json = device_report_json({});
  json["threads_used"] = 8.8e61;
  CHECK_THROWS_WITH(device_report_from_json(json), test::contains_text("got 8.8e+61"));
}

TEST_CASE("environment: a device report comes back the same, with and without a GPU", "[results][json]") {
  DeviceReport report;
  report.threads_used = 2;
  report.gpu_absent = "no GPU";
  report.cpu_ceilings.read_bytes_per_s = 1e10;
  report.cpu_ceilings.f32_flops_per_s = 1e11;
  CHECK(device_report_json(device_report_from_json(device_report_json(report))) == device_report_json(report));
  report.gpu = GpuInfo{.name = "NVIDIA H200",
                       .sm = 90,
                       .sm_count = 132,
                       .memory_bytes = 1,
                       .l2_bytes = 62914560,
                       .driver = "580.159",
                       .cuda_runtime = "13.0",
                       .max_sm_mhz = 1980,
                       .power_limit_w = 700,
                       .uuid = "GPU-1"};
  report.gpu_ceilings.f16_flops_per_s = 7.6e14;
  report.noise.repeat_ratio = 0.004;
  report.at_start.host.governor = "powersave";
  report.at_start.host.load_average = 1.5;
  GpuState& gpu = report.at_start.gpu.emplace();
  gpu.persistence = true;
  gpu.temperature_c = 31;
  gpu.power_w = 75.5;
  gpu.clock_limits = {"power_limited"};
  report.gpu_after_ceilings.emplace().sm_mhz = 1755;
  report.gpu_cache.check.emplace().rotated_ns = 3;
  report.cpu_noise = Noise{.repeat_ratio = 0.01};
  report.cpu_cache.absent = "too little memory";
  const Json json = device_report_json(report);
  CHECK(device_report_json(device_report_from_json(json)) == json);
  CHECK(device_report_from_json(json).gpu_cache.check->rotated_ns == 3);
  CHECK(device_report_from_json(json).cpu_cache.absent == "too little memory");
  CHECK(device_report_from_json(json).gpu_after_ceilings->sm_mhz == 1755);
  CHECK(json.at("ceilings").at("gpu_read_bytes_per_s").is_null());
  CHECK(device_report_from_json(json).gpu->uuid == "GPU-1");
  const MachineState state = device_report_from_json(json).at_start;
  CHECK(state.host.governor == "powersave");
  CHECK_FALSE(state.host.processor_quota);
  REQUIRE(state.gpu);
  CHECK(state.gpu->temperature_c == 31);
  CHECK(state.gpu->clock_limits == std::vector<std::string>{"power_limited"});
  Json older = json;
  for (const char* later : {"at_start", "gpu_after_ceilings", "cpu_noise", "cpu_cache", "gpu_cache"})
    older.erase(later);
  CHECK_FALSE(device_report_from_json(older).at_start.gpu);
  CHECK_FALSE(device_report_from_json(older).gpu_cache.check);
}

TEST_CASE("environment: this machine is described", "[results]") {
  const HostInfo host = read_host_info();
  CHECK_FALSE(host.cpu_model.empty());
  CHECK(host.logical_cpus >= 1);
  CHECK(host.memory_bytes > std::uint64_t{1} << 26);
  CHECK(host.os.find("Linux") != std::string::npos);
}
