#include "harness/results/against.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/measure/stopping.hpp"
#include "harness/operator/registry.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/status.hpp"
#include "harness/results/summary.hpp"

namespace inferometer {
namespace {

double mean(double a, double b) { return (a + b) / 2; }

// Of the mean of two medians: their own errors, which are independent, and half their difference, which is drift.
std::optional<double> half_width(const IsolatedTiming& a, const IsolatedTiming& b) {
  if (!a.ci_low_ns || !a.ci_high_ns || !b.ci_low_ns || !b.ci_high_ns) return std::nullopt;
  const double own = std::hypot(*a.ci_high_ns - *a.ci_low_ns, *b.ci_high_ns - *b.ci_low_ns) / 4;
  return std::hypot(own, (a.median_ns - b.median_ns) / 2);
}

IsolatedTiming combined(const IsolatedTiming& a, const IsolatedTiming& b) {
  IsolatedTiming both = b;
  both.samples = a.samples + b.samples;
  both.median_ns = mean(a.median_ns, b.median_ns);
  both.p5_ns = std::min(a.p5_ns, b.p5_ns);
  both.p95_ns = std::max(a.p95_ns, b.p95_ns);
  both.min_ns = std::min(a.min_ns, b.min_ns);
  both.mad_ns = mean(a.mad_ns, b.mad_ns);
  if (a.sm_mhz_median && b.sm_mhz_median) both.sm_mhz_median = mean(*a.sm_mhz_median, *b.sm_mhz_median);
  if (const auto width = half_width(a, b)) {
    both.ci_low_ns = both.median_ns - *width;
    both.ci_high_ns = both.median_ns + *width;
    both.ci_half_width_ratio = *width / both.median_ns;
  } else {
    both.ci_low_ns.reset();
    both.ci_high_ns.reset();
    both.ci_half_width_ratio.reset();
  }
  for (const std::string& flag : a.flags)
    if (std::find(both.flags.begin(), both.flags.end(), flag) == both.flags.end()) both.flags.push_back(flag);
  return both;
}

// The rates of the same work, done in `faster` times less time.
void speed_up(Rates& rates, double faster) {
  for (std::optional<double>* rate : {&rates.flops_per_s, &rates.bytes_per_s, &rates.fraction_of_ceiling})
    if (*rate) **rate *= faster;
}

bool is_built(const Record& record) {
  const Variant* variant = find_variant(record.operator_name, record.variant);
  return variant != nullptr && variant->not_built.empty();
}

// The file's rows as a run names them now: a field that came later has its default, and the id is of all fields.
Json with_current_ids(Json base) {
  for (Json& row : base.at("rows")) {
    const Record record = record_from_json(row);
    const Operator* op = find_operator(record.operator_name);
    if (op == nullptr) continue;
    Fields problem;
    bool lacks_fields = false;
    for (const FieldInfo& field : op->fields) {
      const Value* value = field_in(record.problem, field.name);
      lacks_fields |= value == nullptr;
      problem.emplace_back(field.name, value != nullptr ? *value : field.default_value);
    }
    if (!lacks_fields) continue;
    row["problem"] = fields_json(problem);
    row["id"] = row_id(record.operator_name, record.variant, problem);
  }
  return base;
}

}  // namespace

std::map<std::string, SweepRow> rows_to_interleave(const Sweep& sweep, const Json& base) {
  require_results(base);
  std::set<std::string> held;
  std::map<std::string, std::vector<Record>> by_problem;
  for (Record& record : records_of(with_current_ids(base))) {
    held.insert(record.id);
    if (!has_timing(record.status) || !is_built(record)) continue;
    by_problem[record.operator_name + " " + to_string(record.problem)].push_back(std::move(record));
  }
  const std::string baseline = baseline_variant(base.at("config"));
  std::map<std::string, SweepRow> counterparts;
  for (const SweepRow& row : sweep.rows) {
    if (held.contains(row.id)) continue;
    const auto found = by_problem.find(row.operator_name + " " + to_string(row.problem));
    if (found == by_problem.end()) continue;
    const std::vector<Record>& records = found->second;
    const auto chosen = std::find_if(records.begin(), records.end(), [&](const Record& record) {
      return records.size() == 1 || record.variant == baseline;
    });
    if (chosen == records.end()) continue;
    SweepRow& counterpart = counterparts[row.id] = row;
    counterpart.id = chosen->id;
    counterpart.variant = chosen->variant;
    counterpart.baseline_id.clear();
  }
  return counterparts;
}

Record combined(const Record& first, const Record& second) {
  if (first.status != Status::ok) return first;
  if (second.status != Status::ok) return second;
  Record both = second;
  Timing& timing = *both.timing;
  timing.isolated = combined(first.timing->isolated, second.timing->isolated);
  if (timing.amortized && first.timing->amortized) {
    timing.amortized->launches += first.timing->amortized->launches;
    timing.amortized->mean_ns = mean(first.timing->amortized->mean_ns, second.timing->amortized->mean_ns);
  } else {
    timing.amortized.reset();
  }
  choose_headline(timing);
  if (both.rates) speed_up(*both.rates, second.timing->headline_ns / timing.headline_ns);
  return both;
}

Comparison compare_against(const Against& against, const Json& results, const RecordsById& interleaved) {
  Json base = with_current_ids(against.base);
  Json now = results;
  std::set<std::string> measured;
  for (const Json& row : now.at("rows")) measured.insert(text_from(row.at("id")));
  const auto keep = [](Json& file, const auto& wanted) {
    Json rows = Json::array();
    for (Json& row : file.at("rows"))
      if (wanted(text_from(row.at("id")))) rows.push_back(std::move(row));
    file["rows"] = std::move(rows);
  };
  const std::vector<Record> records = records_of(results);
  keep(base, [&](const std::string& id) { return measured.contains(id); });
  keep(now, [&](const std::string& id) { return !interleaved.contains(id); });
  Comparison comparison = compare_results(base, now, against.threshold);
  for (const Record& record : records)
    if (const auto counterpart = interleaved.find(record.id); counterpart != interleaved.end())
      comparison.rows.push_back(
          compare_records(counterpart->second, record, against.threshold, comparison.noise_floor));
  return comparison;
}

}  // namespace inferometer
