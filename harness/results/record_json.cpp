#include "harness/results/record_json.hpp"

#include <stdexcept>

#include "harness/results/status.hpp"

namespace inferometer {
namespace {

Json check_json(const Check& check) {
  return {{"reference", check.reference},
          {"outputs_checked", check.outputs_checked},
          {"outputs_total", check.outputs_total},
          {"max_abs_error", check.max_abs_error},
          {"rel_l2_error", check.rel_l2_error},
          {"tolerance_rel_l2", check.tolerance_rel_l2},
          {"worst_tensor", or_null(check.worst_tensor)},
          {"worst_index", check.worst_index},
          {"repeated_after_timing", check.repeated_after_timing}};
}

Check check_from(const Json& json) {
  Check check;
  check.reference = json.at("reference");
  check.outputs_checked = whole_from<std::int64_t>(json.at("outputs_checked"));
  check.outputs_total = whole_from<std::int64_t>(json.at("outputs_total"));
  check.max_abs_error = real_from(json.at("max_abs_error"));
  check.rel_l2_error = real_from(json.at("rel_l2_error"));
  check.tolerance_rel_l2 = real_from(json.at("tolerance_rel_l2"));
  check.worst_tensor = text_from(json.at("worst_tensor"));
  check.worst_index = wholes_from<std::int64_t>(json.at("worst_index"));
  check.repeated_after_timing = json.at("repeated_after_timing");
  return check;
}

const char* cache_name(CacheMode mode) { return mode == CacheMode::cold ? "cold" : "warm"; }

CacheMode cache_from(const Json& json) {
  const auto name = json.get<std::string>();
  if (name != "cold" && name != "warm") throw std::runtime_error("cache must be \"cold\" or \"warm\", got " + name);
  return name == "cold" ? CacheMode::cold : CacheMode::warm;
}

Json profiler_json(const ProfilerTiming& timing) {
  Json kernels = Json::array();
  for (const KernelTime& kernel : timing.kernels)
    kernels.push_back({{"name", kernel.name}, {"count", kernel.count}, {"mean_ns", kernel.mean_ns}});
  return {{"tool", timing.tool},
          {"samples", timing.samples},
          {"median_ns", timing.median_ns},
          {"p5_ns", timing.p5_ns},
          {"p95_ns", timing.p95_ns},
          {"between_events_ns", timing.between_events_ns},
          {"sm_mhz_median", or_null(timing.sm_mhz_median)},
          {"kernels", std::move(kernels)}};
}

ProfilerTiming profiler_from(const Json& json) {
  ProfilerTiming timing;
  timing.tool = json.at("tool");
  timing.samples = whole_from<int>(json.at("samples"));
  timing.median_ns = real_from(json.at("median_ns"));
  timing.p5_ns = real_from(json.at("p5_ns"));
  timing.p95_ns = real_from(json.at("p95_ns"));
  timing.between_events_ns = real_from(json.at("between_events_ns"));
  timing.sm_mhz_median = optional_real_from(json.at("sm_mhz_median"));
  for (const Json& kernel : json.at("kernels"))
    timing.kernels.push_back({.name = kernel.at("name"),
                              .count = whole_from<int>(kernel.at("count")),
                              .mean_ns = real_from(kernel.at("mean_ns"))});
  return timing;
}

constexpr std::pair<Arithmetic, const char*> kArithmeticNames[] = {
    {Arithmetic::f16_matmul, "f16_matmul"}, {Arithmetic::f32, "f32"}, {Arithmetic::int8_matmul, "int8_matmul"}};

Json work_json(const Work& work) {
  Json json = {{"flops", work.flops}, {"bytes", work.bytes}};
  for (const auto& [value, name] : kArithmeticNames)
    if (value == work.arithmetic) json["arithmetic"] = name;
  return json;
}

Work work_from(const Json& json) {
  Work work{.flops = real_from(json.at("flops")), .bytes = real_from(json.at("bytes"))};
  for (const auto& [value, name] : kArithmeticNames)
    if (json.at("arithmetic") == name) work.arithmetic = value;
  return work;
}

Json rates_json(const Rates& rates) {
  return {{"flops_per_s", or_null(rates.flops_per_s)},
          {"bytes_per_s", or_null(rates.bytes_per_s)},
          {"limit", or_null(rates.limit)},
          {"fraction_of_ceiling", or_null(rates.fraction_of_ceiling)}};
}

Rates rates_from(const Json& json) {
  return {.flops_per_s = optional_real_from(json.at("flops_per_s")),
          .bytes_per_s = optional_real_from(json.at("bytes_per_s")),
          .limit = text_from(json.at("limit")),
          .fraction_of_ceiling = optional_real_from(json.at("fraction_of_ceiling"))};
}

constexpr std::string_view kBytes = "_bytes";

// The designed roles always, so that a table of them has no holes; other roles where a row used them.
Json memory_json(const std::map<std::string, std::size_t>& by_role) {
  Json json;
  for (const char* role : {"inputs", "outputs", "workspace", "weights", "kv_pool"})
    json[std::string(role).append(kBytes)] = 0;
  for (const auto& [role, bytes] : by_role)
    if (role != "peak") json[std::string(role).append(kBytes)] = bytes;
  const auto peak = by_role.find("peak");
  json["peak_bytes"] = peak != by_role.end() ? peak->second : 0;
  return json;
}

std::map<std::string, std::size_t> memory_from(const Json& json) {
  std::map<std::string, std::size_t> by_role;
  for (const auto& [key, bytes] : json.items()) {
    if (!key.ends_with(kBytes)) throw std::runtime_error("memory." + key + " has no unit");
    by_role[key.substr(0, key.size() - kBytes.size())] = whole_from<std::size_t>(bytes);
  }
  return by_role;
}

}  // namespace

Json timing_json(const Timing& timing) {
  const IsolatedTiming& one = timing.isolated;
  Json json = {{"headline", timing.headline},
               {"headline_ns", timing.headline_ns},
               {"isolated",
                {{"samples", one.samples},
                 {"median_ns", one.median_ns},
                 {"p5_ns", one.p5_ns},
                 {"p95_ns", one.p95_ns},
                 {"min_ns", one.min_ns},
                 {"mad_ns", one.mad_ns},
                 {"ci_low_ns", or_null(one.ci_low_ns)},
                 {"ci_high_ns", or_null(one.ci_high_ns)},
                 {"ci_half_width_ratio", or_null(one.ci_half_width_ratio)},
                 {"stop_reason", one.stop_reason},
                 {"cache", cache_name(one.cache)},
                 {"rest_seconds", one.rest_seconds},
                 {"sm_mhz_median", or_null(one.sm_mhz_median)},
                 {"flags", one.flags}}},
               {"amortized", nullptr}};
  if (const auto& many = timing.amortized)
    json["amortized"] = {{"launches", many->launches},
                         {"mean_ns", many->mean_ns},
                         {"input_sets", many->input_sets},
                         {"cache", cache_name(many->cache)}};
  if (timing.profiler) json["profiler"] = profiler_json(*timing.profiler);
  if (!timing.profiler_absent.empty()) json["profiler_absent"] = timing.profiler_absent;
  return json;
}

Timing timing_from_json(const Json& json) {
  Timing timing;
  timing.headline = json.at("headline");
  timing.headline_ns = real_from(json.at("headline_ns"));
  const Json& one = json.at("isolated");
  timing.isolated.samples = whole_from<int>(one.at("samples"));
  timing.isolated.median_ns = real_from(one.at("median_ns"));
  timing.isolated.p5_ns = real_from(one.at("p5_ns"));
  timing.isolated.p95_ns = real_from(one.at("p95_ns"));
  timing.isolated.min_ns = real_from(one.at("min_ns"));
  timing.isolated.mad_ns = real_from(one.at("mad_ns"));
  timing.isolated.ci_low_ns = optional_real_from(one.at("ci_low_ns"));
  timing.isolated.ci_high_ns = optional_real_from(one.at("ci_high_ns"));
  timing.isolated.ci_half_width_ratio = optional_real_from(one.at("ci_half_width_ratio"));
  timing.isolated.stop_reason = one.at("stop_reason");
  timing.isolated.cache = cache_from(one.at("cache"));
  timing.isolated.rest_seconds = real_from(one.at("rest_seconds"));
  timing.isolated.sm_mhz_median = optional_real_from(one.at("sm_mhz_median"));
  timing.isolated.flags = one.at("flags").get<std::vector<std::string>>();
  if (const Json& many = json.at("amortized"); !many.is_null())
    timing.amortized = AmortizedTiming{.launches = whole_from<std::int64_t>(many.at("launches")),
                                       .mean_ns = real_from(many.at("mean_ns")),
                                       .input_sets = whole_from<int>(many.at("input_sets")),
                                       .cache = cache_from(many.at("cache"))};
  if (const auto profiler = json.find("profiler"); profiler != json.end()) timing.profiler = profiler_from(*profiler);
  if (const auto absent = json.find("profiler_absent"); absent != json.end()) timing.profiler_absent = *absent;
  return timing;
}

Json fields_json(const Fields& fields) {
  Json json = Json::object();
  for (const auto& [name, value] : fields)
    json[name] = std::visit([](const auto& typed) { return Json(typed); }, value);
  return json;
}

Fields fields_from_json(const Json& json) {
  Fields fields;
  for (const auto& [name, value] : json.items()) {
    if (value.is_boolean()) {
      fields.emplace_back(name, value.get<bool>());
    } else if (value.is_number_integer()) {
      fields.emplace_back(name, whole_from<std::int64_t>(value));
    } else if (value.is_number()) {
      fields.emplace_back(name, value.get<double>());
    } else if (value.is_array()) {
      fields.emplace_back(name, wholes_from<std::int64_t>(value));
    } else {
      fields.emplace_back(name, value.get<std::string>());
    }
  }
  return fields;
}

Json record_json(const Record& record) {
  Json metrics = Json::object();
  for (const Metric& metric : record.metrics) metrics[metric.name] = metric.value;
  Json json = {{"id", record.id},
               {"operator", record.operator_name},
               {"variant", record.variant},
               {"backend", record.backend},
               {"device", or_null(record.device)},
               {"problem", fields_json(record.problem)},
               {"status", status_name(record.status)},
               {"reason", or_null(record.reason)},
               {"check", record.check ? check_json(*record.check) : Json(nullptr)},
               {"timing", record.timing ? timing_json(*record.timing) : Json(nullptr)},
               {"work", record.work ? work_json(*record.work) : Json(nullptr)},
               {"rates", record.rates ? rates_json(*record.rates) : Json(nullptr)},
               {"memory", record.memory_bytes.empty() ? Json(nullptr) : memory_json(record.memory_bytes)},
               {"metrics", std::move(metrics)}};
  if (!record.versions.empty()) json["versions"] = record.versions;
  for (const std::string& path : null_non_finite(json)) {
    const std::string flag = path + " was not a finite number";
    std::string reason = text_from(json["reason"]);
    if (reason.find(flag) != std::string::npos) continue;
    if (!reason.empty()) reason.append("; ");
    json["reason"] = reason.append(flag);
  }
  return json;
}

Record record_from_json(const Json& json) {
  Record record;
  record.id = json.at("id");
  record.operator_name = json.at("operator");
  record.variant = json.at("variant");
  record.backend = json.at("backend");
  if (const auto device = json.find("device"); device != json.end())
    record.device = text_from(*device);  // older ones lack it
  record.problem = fields_from_json(json.at("problem"));
  const auto status = parse_status(json.at("status").get<std::string>());
  if (!status) throw std::runtime_error("unknown status " + json.at("status").dump());
  record.status = *status;
  record.reason = text_from(json.at("reason"));
  if (const Json& check = json.at("check"); !check.is_null()) {
    record.check = check_from(check);
    record.check->passed = has_timing(record.status);
    if (record.status == Status::incorrect) record.check->reason = record.reason;
  }
  if (const Json& timing = json.at("timing"); !timing.is_null()) {
    record.timing = timing_from_json(timing);
    record.timing->suspect = record.status == Status::suspect;
    if (record.timing->suspect) record.timing->suspect_reason = record.reason;
  }
  if (const Json& work = json.at("work"); !work.is_null()) record.work = work_from(work);
  if (const Json& rates = json.at("rates"); !rates.is_null()) record.rates = rates_from(rates);
  if (const Json& memory = json.at("memory"); !memory.is_null()) record.memory_bytes = memory_from(memory);
  if (json.contains("versions")) record.versions = json.at("versions").get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : json.at("metrics").items()) record.metrics.push_back({name, real_from(value)});
  return record;
}

std::vector<Record> records_of(const Json& results) {
  std::vector<Record> records;
  for (const Json& row : results.at("rows")) records.push_back(record_from_json(row));
  return records;
}

Json measure_json(const MeasureConfig& config) {
  return {{"cache", cache_name(config.cache)},  {"min_samples", config.min_samples},
          {"max_samples", config.max_samples},  {"max_seconds", config.max_seconds},
          {"relative_ci", config.relative_ci},  {"rest_seconds", config.rest_seconds},
          {"kernel_times", config.kernel_times}};
}

MeasureConfig measure_from_json(const Json& json) {
  return {.cache = cache_from(json.at("cache")),
          .min_samples = whole_from<int>(json.at("min_samples")),
          .max_samples = whole_from<int>(json.at("max_samples")),
          .max_seconds = json.at("max_seconds"),
          .relative_ci = json.at("relative_ci"),
          .rest_seconds = json.at("rest_seconds"),
          .kernel_times = json.at("kernel_times")};
}

}  // namespace inferometer
