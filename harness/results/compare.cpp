#include "harness/results/compare.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/operator/registry.hpp"
#include "harness/results/cache_warnings.hpp"
#include "harness/results/compare_clocks.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/shown_provenance.hpp"
#include "harness/results/status.hpp"

namespace inferometer {
namespace {

// What names a row in every file.
std::string key_of(const Record& record) {
  Fields fields = record.problem;
  if (const Operator* op = find_operator(record.operator_name))
    for (const FieldInfo& field : op->fields)
      if (field_in(fields, field.name) == nullptr) fields.emplace_back(field.name, field.default_value);
  std::sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return record.operator_name + ' ' + record.variant + ' ' + to_line(fields_json(fields));
}

// Says where the two differ in something that times depend on.
void note_difference(std::vector<std::string>& obstacles, const std::string& what, const Json& base, const Json& now) {
  if (base != now)
    obstacles.push_back(what + ": " + base.dump() + " in the base file, " + now.dump() + " in the new one");
}

Json member(const Json& json, const char* name) {
  return json.is_object() ? json.value(name, Json(nullptr)) : Json(nullptr);
}

bool on_gpu(const Record& record) { return has_timing(record.status) && record.backend != "cpu"; }
bool on_cpu(const Record& record) { return has_timing(record.status) && record.backend == "cpu"; }

// Drivers keep a little memory for themselves, and not each the same.
bool same_memory(const Json& base, const Json& now) {
  constexpr double kReserved = 0.02;
  if (!base.is_number() || !now.is_number()) return base == now;
  const auto one = base.get<double>();
  const auto other = now.get<double>();
  return std::min(one, other) >= (1 - kReserved) * std::max(one, other);
}

// Two GPUs are of one kind whatever machine they are in, and run at one speed if their clocks and power may be as high.
std::vector<std::string> gpu_differences(const Json& base, const Json& now) {
  std::vector<std::string> differences;
  const auto compare = [&](std::initializer_list<std::pair<const char*, const char*>> members) {
    for (const auto& [name, label] : members)
      note_difference(differences, label, member(base, name), member(now, name));
  };
  compare({{"name", "GPU"}});
  if (!differences.empty()) return differences;  // the others follow from it
  compare({{"sm", "compute capability"}, {"sm_count", "multiprocessors"}});
  if (const char* memory = "memory_bytes"; !same_memory(member(base, memory), member(now, memory)))
    compare({{memory, "GPU memory"}});
  compare({{"max_sm_mhz", "highest SM clock"}, {"power_limit_w", "power limit"}});
  return differences;
}

std::vector<std::string> host_differences(const Json& base, const Json& now) {
  std::vector<std::string> differences;
  note_difference(differences, "CPU", member(base, "cpu_model"), member(now, "cpu_model"));
  note_difference(differences, "threads", member(base, "threads_used"), member(now, "threads_used"));
  return differences;
}

std::string shown_gpu(const Json& gpu) {
  return member(gpu, "name").dump() + " of " + member(gpu, "max_sm_mhz").dump() + " MHz and " +
         member(gpu, "power_limit_w").dump() + " W";
}

std::string shown_host(const Json& host) {
  return member(host, "cpu_model").dump() + " with " + member(host, "threads_used").dump() + " threads";
}

// Of `device`, "gpu" or "host", of two files. A file may be merged from parts that ran on devices of several kinds.
template <class Differences, class Shown>
std::vector<std::string> device_differences(const Json& base, const Json& now, const char* device,
                                            Differences differences, Shown shown) {
  const auto own = [&](const Json& of) { return member(member(of, "environment"), device); };
  std::vector<std::string> found = differences(own(base), own(now));
  const auto look_at_parts = [&](const Json& results, const char* file) {
    for (const Json& part : member(results, "parts")) {
      const Json other = own(part);
      if (other.is_null() || differences(own(results), other).empty()) continue;
      found.push_back(std::string("the ") + file + " file was merged from parts on " + shown(own(results)) +
                      " and on " + shown(other));
      return;
    }
  };
  look_at_parts(base, "base");
  look_at_parts(now, "new");
  return found;
}

ComparedProgram program_of(const Json& results) {
  const Json program = member(results.at("environment"), "program");
  ComparedProgram one{.commit = {}, .kernels_sha256 = text_from(member(program, "kernels_sha256"))};
  if (member(program, "git_commit").is_string() && member(program, "git_dirty").is_boolean())
    one.commit = shown_commit(program);
  return one;
}

double noise_floor(const Json& results) {
  const Json ratio = member(member(results.at("environment"), "noise"), "repeat_ratio");
  return ratio.is_number() ? ratio.get<double>() : 0;
}

// Else the isolated medians are compared, which every row has.
bool both_amortized(const Timing& base, const Timing& now) {
  return base.headline == "amortized" && now.headline == "amortized" && base.amortized && now.amortized;
}

bool same_cache(const Timing& base, const Timing& now) {
  if (both_amortized(base, now)) return base.amortized->cache == now.amortized->cache;
  return base.isolated.cache == now.isolated.cache && base.isolated.rest_seconds == now.isolated.rest_seconds;
}

// Half the width of the median's interval on a logarithmic scale. An amortised mean has none of its own: its samples'
// stands for it.
std::optional<double> log_half_width(const Timing& timing) {
  const IsolatedTiming& one = timing.isolated;
  if (!one.ci_low_ns || !one.ci_high_ns || *one.ci_low_ns <= 0) return std::nullopt;
  return std::log(*one.ci_high_ns / *one.ci_low_ns) / 2;
}

// Why a time has no interval; empty where it has one.
std::string no_interval(const std::string& where, const Timing& timing) {
  if (log_half_width(timing)) return {};
  const int samples = timing.isolated.samples;
  return where + " has " + std::to_string(samples) + (samples == 1 ? " sample" : " samples") +
         ", too few for an interval";
}

std::string suspicion(const std::string& where, const Record& record) {
  return record.status == Status::suspect ? where + " is suspect: " + record.reason : "";
}

std::string interruption(const std::string& where, const Record& record) {
  return was_interrupted(record) ? where + " was interrupted by other programs" : "";
}

std::string joined(std::initializer_list<std::string> sentences) {
  std::string text;
  for (const std::string& sentence : sentences)
    if (!sentence.empty()) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

Verdict verdict_of(double low, double high, double threshold) {
  const double slower = 1 + threshold;
  const double faster = 1 / slower;
  if (low > slower) return Verdict::slower;
  if (high < faster) return Verdict::faster;
  return low >= faster && high <= slower ? Verdict::same : Verdict::noisy;
}

// Both have times. Independent errors add as squares.
void compare_times(ComparedRow& row, double threshold, double noise) {
  const Timing& base = *row.base->timing;
  const Timing& now = *row.now->timing;
  const bool amortized = both_amortized(base, now);
  row.estimator = amortized ? "amortized" : "isolated";
  row.base_ns = amortized ? base.amortized->mean_ns : base.isolated.median_ns;
  row.now_ns = amortized ? now.amortized->mean_ns : now.isolated.median_ns;
  if (!(row.base_ns > 0) || !(row.now_ns > 0)) return;
  row.ratio = row.now_ns / row.base_ns;
  const auto base_width = log_half_width(base);
  const auto now_width = log_half_width(now);
  if (!base_width || !now_width) return;
  const double width = std::hypot(std::hypot(*base_width, *now_width), std::log1p(noise));
  row.ratio_low = *row.ratio * std::exp(-width);
  row.ratio_high = *row.ratio * std::exp(width);
  row.verdict = verdict_of(*row.ratio_low, *row.ratio_high, threshold);
  if (amortized) return;
  row.clock_doubt = clock_doubt(base, now, *row.ratio_low, *row.ratio_high, threshold);
  if (!row.clock_doubt.empty()) row.verdict = Verdict::noisy;
}

}  // namespace

void require_results(const Json& json) {
  if (!json.is_object() || text_from(json.value("schema", Json(nullptr))) != kResultsSchema)
    throw std::runtime_error("is no results file (its \"schema\" must be \"" + std::string(kResultsSchema) + "\")");
}

bool was_interrupted(const Record& record) {
  if (!record.timing) return false;
  const std::vector<std::string>& flags = record.timing->isolated.flags;
  return std::find(flags.begin(), flags.end(), "interrupted") != flags.end();
}

ComparedRow compare_records(const Record& base, const Record& now, double threshold, double noise) {
  ComparedRow row;
  row.base = base;
  row.now = now;
  if (!now.timing) {
    row.verdict = Verdict::failed;
    row.reason = now.reason;
    return row;
  }
  const std::string base_suspicion = suspicion("the base row", base);
  const std::string now_suspicion = suspicion("the new row", now);
  const std::string now_interruption = interruption("the new row", now);
  if (!base.timing) {
    row.verdict = Verdict::added;
    row.reason = joined({now_suspicion, now_interruption});
  } else if (same_cache(*base.timing, *now.timing)) {
    compare_times(row, threshold, noise);
    row.reason =
        joined({row.clock_doubt, no_interval("the base row", *base.timing), no_interval("the new row", *now.timing),
                base_suspicion, now_suspicion, interruption("the base row", base), now_interruption});
    if (!base_suspicion.empty() || !now_suspicion.empty()) row.verdict = Verdict::noisy;
  } else {
    row.reason = "measured with another state of the cache, or other rests";
  }
  return row;
}

Comparison compare_results(const Json& base, const Json& now, double threshold) {
  require_results(base);
  require_results(now);
  Comparison comparison;
  for (const auto& [file, results] : {std::pair("base", &base), std::pair("new", &now)})
    for (const std::string& warning : cache_warnings(*results))
      comparison.warnings.push_back(std::string("in the ") + file + " file, " + warning);
  comparison.base = program_of(base);
  comparison.now = program_of(now);
  comparison.threshold = threshold;
  comparison.noise_floor = std::max(noise_floor(base), noise_floor(now));
  std::vector<Record> base_rows = records_of(base);
  const auto any_row = [&](auto where) { return std::any_of(base_rows.begin(), base_rows.end(), where); };
  if (any_row(on_gpu)) comparison.obstacles = device_differences(base, now, "gpu", gpu_differences, shown_gpu);
  if (any_row(on_cpu)) {
    auto differences = device_differences(base, now, "host", host_differences, shown_host);
    // Rows of a GPU are the same on any host: they are compared, and those of the CPU named.
    (any_row(on_gpu) ? comparison.host_differences : comparison.obstacles).swap(differences);
  }
  std::map<std::string, Record> now_rows;
  std::vector<std::string> order;
  for (Record& record : records_of(now)) {
    order.push_back(key_of(record));
    now_rows.insert_or_assign(order.back(), std::move(record));
  }
  for (Record& record : base_rows) {
    auto found = now_rows.extract(key_of(record));
    ComparedRow row;
    row.base = std::move(record);
    if (found.empty()) {
      row.verdict = Verdict::missing;
      comparison.rows.push_back(std::move(row));
      continue;
    }
    const Record& before = *row.base;
    const Record& now_record = found.mapped();
    if (before.status == Status::unsupported && now_record.status == Status::unsupported) continue;
    if (!comparison.host_differences.empty() && on_cpu(before) && on_cpu(now_record)) {
      row.verdict = Verdict::other_host;
      row.now = std::move(found.mapped());
      comparison.rows.push_back(std::move(row));
      continue;
    }
    if (before.timing && now_record.timing && !same_cache(*before.timing, *now_record.timing))
      comparison.obstacles.push_back("row " + before.id + " (" + before.variant +
                                     ") was measured with another state of the cache, or other rests");
    comparison.rows.push_back(compare_records(before, now_record, threshold, comparison.noise_floor));
  }
  for (const std::string& key : order)
    if (auto left = now_rows.extract(key); !left.empty()) {
      ComparedRow row;
      row.verdict = Verdict::added;
      row.now = std::move(left.mapped());
      comparison.rows.push_back(std::move(row));
    }
  return comparison;
}

int exit_code(const Comparison& comparison) {
  if (!comparison.obstacles.empty()) return 4;
  const auto any = [&](std::initializer_list<Verdict> verdicts) {
    return std::any_of(comparison.rows.begin(), comparison.rows.end(), [&](const ComparedRow& row) {
      return std::find(verdicts.begin(), verdicts.end(), row.verdict) != verdicts.end();
    });
  };
  if (any({Verdict::slower})) return 1;
  return any({Verdict::missing, Verdict::added, Verdict::failed, Verdict::other_host}) ? 3 : 0;
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower: return "slower";
    case Verdict::faster: return "faster";
    case Verdict::same: return "same";
    case Verdict::noisy: return "noisy";
    case Verdict::failed: return "failed";
    case Verdict::missing: return "missing";
    case Verdict::added: return "new";
    case Verdict::other_host: return "other host";
  }
  return "?";
}

}  // namespace inferometer
