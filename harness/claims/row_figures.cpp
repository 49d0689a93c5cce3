#include "harness/claims/row_figures.hpp"

#include <algorithm>
#include <cmath>

#include "harness/operator/fields.hpp"
#include "harness/results/results_file.hpp"

namespace inferometer {
namespace {

std::optional<double> metric_of(const Record& record, const std::string& name) {
  const auto found = std::find_if(record.metrics.begin(), record.metrics.end(),
                                  [&](const Metric& metric) { return metric.name == name; });
  return found == record.metrics.end() || !std::isfinite(found->value) ? std::nullopt : std::optional(found->value);
}

std::optional<double> memory_of(const Record& record, const std::string& role) {
  const auto found = record.memory_bytes.find(role);
  return found == record.memory_bytes.end() ? std::nullopt : std::optional(static_cast<double>(found->second));
}

// The headline, with the isolated median's relative interval, as speed-ups have it.
std::optional<Figure> time_of(const Record& record) {
  if (!record.timing || !(record.timing->headline_ns > 0)) return std::nullopt;
  Figure figure{.value = record.timing->headline_ns, .interval = std::nullopt};
  const IsolatedTiming& one = record.timing->isolated;
  if (one.ci_low_ns && one.ci_high_ns && one.median_ns > 0) {
    const double scale = figure.value / one.median_ns;
    figure.interval = Interval{.low = scale * *one.ci_low_ns, .high = scale * *one.ci_high_ns};
  }
  return figure;
}

}  // namespace

std::optional<Figure> figure_of(const Quantity& quantity, const EvidenceRow& row) {
  std::optional<Figure> figure;
  if (quantity.kind == Quantity::Kind::time) {
    figure = time_of(row.record);
  } else {
    const auto value = quantity.kind == Quantity::Kind::metric ? metric_of(row.record, quantity.name)
                                                               : memory_of(row.record, quantity.name);
    if (value) figure = Figure{.value = *value, .interval = std::nullopt};
  }
  if (figure) figure->simulated = row.simulated();
  return figure;
}

const EvidenceRow* counterpart_of(const ClaimPart& part, const EvidenceRow& row, const Evidence& evidence) {
  const Counterpart& against = *part.against;
  std::string variant = against.variant.empty() ? row.record.variant : against.variant;
  if (const auto own = against.variants.find(row.record.variant); own != against.variants.end()) variant = own->second;
  Fields problem = row.record.problem;
  for (const auto& [name, value] : against.replaced)
    for (auto& [field, held] : problem)
      if (field == name) held = value;
  try {
    problem = problem_in_full(*part.op, problem);
  } catch (const ProblemError&) {
    return nullptr;  // the operator knows no such problem: nothing stands against this row
  }
  const EvidenceRow* found = evidence.find(row.file, part.op->name, variant, problem);
  return found != nullptr && found->record.status == Status::ok ? found : nullptr;
}

std::optional<Figure> ratio_of(const Quantity& quantity, const EvidenceRow& of, const EvidenceRow& over) {
  if (quantity.kind == Quantity::Kind::time) {
    const auto faster = speedup(over.record, of.record);  // the time of `of` over that of `over`
    if (!faster) return std::nullopt;
    return Figure{
        .value = faster->ratio, .interval = faster->interval, .simulated = of.simulated() || over.simulated()};
  }
  const auto numerator = figure_of(quantity, of);
  const auto divisor = figure_of(quantity, over);
  if (!numerator || !divisor || divisor->value == 0) return std::nullopt;
  return Figure{.value = numerator->value / divisor->value,
                .interval = std::nullopt,
                .simulated = numerator->simulated || divisor->simulated};
}

}  // namespace inferometer
