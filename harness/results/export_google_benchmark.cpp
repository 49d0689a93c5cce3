#include "harness/results/exports.hpp"

namespace inferometer {
namespace {

Json context_of(const Json& file) {
  const Json& environment = file.at("environment");
  const Json& host = environment.at("host");
  const Json& program = environment.at("program");
  Json context = {{"date", file.at("started_at")},
                  {"host_name", ""},
                  {"executable", "inferometer"},
                  {"num_cpus", host.at("logical_cpus")},
                  {"mhz_per_cpu", 0},
                  {"cpu_scaling_enabled", false},
                  {"caches", Json::array()},
                  {"load_avg", Json::array()},
                  {"library_build_type", "release"},
                  {"cpu_model", host.at("cpu_model")},
                  {"git_commit", program.at("git_commit")}};
  if (const Json& gpu = environment.at("gpu"); !gpu.is_null()) context["gpu"] = gpu.at("name");
  return context;
}

Json iterations_of(const Json& timing) {
  if (timing.is_null()) return 0;
  if (timing.at("headline") == "amortized" && !timing.at("amortized").is_null())
    return timing.at("amortized").at("launches");
  return timing.at("isolated").at("samples");
}

Json benchmark_of(const Json& row, std::size_t family) {
  const std::string name = text_from(row.at("operator")) + "/" + text_from(row.at("variant")) + "/" + problem_word(row);
  Json json = {{"name", name},
               {"family_index", family},
               {"per_family_instance_index", 0},
               {"run_name", name},
               {"run_type", "iteration"},
               {"repetitions", 1},
               {"repetition_index", 0},
               {"threads", 1}};
  const Json& timing = row.at("timing");
  const bool timed = !timing.is_null() && timing.at("headline_ns").is_number();
  if (!timed) {
    json["error_occurred"] = true;
    json["error_message"] = text_from(row.at("status")) + ": " + text_from(row.at("reason"));
  }
  const Json ns = timed ? timing.at("headline_ns") : Json(0.0);
  json["iterations"] = iterations_of(timing);
  json["real_time"] = ns;
  json["cpu_time"] = ns;  // of a GPU row the processors' time says nothing; compare.py wants a figure
  json["time_unit"] = "ns";
  const Json& rates = row.at("rates");
  if (timed && !rates.is_null()) {
    if (rates.at("bytes_per_s").is_number()) json["bytes_per_second"] = rates.at("bytes_per_s");
    if (rates.at("flops_per_s").is_number()) json["flops_per_second"] = rates.at("flops_per_s");
  }
  for (const auto& [metric, value] : row.at("metrics").items())
    if (value.is_number() && !json.contains(metric)) json[metric] = value;
  return json;
}

}  // namespace

std::string export_google_benchmark(const std::vector<Json>& results) {
  Json json = {{"context", Json::object()}, {"benchmarks", Json::array()}};
  if (!results.empty()) json["context"] = context_of(results.front());
  for (const Json& file : results)
    for (const Json& row : file.at("rows")) json["benchmarks"].push_back(benchmark_of(row, json["benchmarks"].size()));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace inferometer
