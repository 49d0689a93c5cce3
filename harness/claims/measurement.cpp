#include "harness/claims/measurement.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

#include "harness/claims/along_statistics.hpp"
#include "harness/claims/row_figures.hpp"
#include "harness/results/status.hpp"
#include "harness/sweep/glob.hpp"

namespace inferometer {
namespace {

bool all_hold(const std::vector<Condition>& conditions, const Record& record) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
    try {
      return condition.expression.holds(record.problem, record.variant);
    } catch (const ExpressionError& error) {
      throw ConfigError(condition.place + ": " + error.what());
    }
  });
}

// The field of `problem` that statistics run along; none where it is no number.
std::optional<double> place_of(const Fields& problem, const std::string& along) {
  for (const auto& [name, value] : problem) {
    if (name != along) continue;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
    if (const auto* real = std::get_if<double>(&value)) return *real;
  }
  return std::nullopt;
}

Fields without(Fields problem, const std::string& name) {
  std::erase_if(problem, [&](const auto& field) { return field.first == name; });
  return problem;
}

// Rows of older files do not say where they ran.
bool ran_on_two_devices(const Record& one, const Record& other) {
  return !one.device.empty() && !other.device.empty() && one.device != other.device;
}

struct FiguredRow {
  const EvidenceRow* row = nullptr;
  Figure figure;
};

class Measuring {
 public:
  Measuring(const ClaimPart& part, const Evidence& evidence) : part_(part), evidence_(evidence) {}

  Measurement run() {
    std::vector<FiguredRow> rows = figured_rows();
    if (part_.along.empty()) {
      for (const auto& [row, figure] : rows) add(*row, row->record.problem, figure);
    } else {
      add_groups(rows);
    }
    keep_latest();
    keep_measured();
    for (ClaimPoint& point : measurement_.points) point.inside = part_.accepted.contains(point.value);
    return std::move(measurement_);
  }

 private:
  void leave_out(const std::string& why, int count = 1) { measurement_.left_out[why] += count; }

  bool is_wanted(const Record& record) const {
    return record.operator_name == part_.op->name &&
           std::any_of(part_.variants.begin(), part_.variants.end(),
                       [&](const std::string& pattern) { return glob_matches(pattern, record.variant); }) &&
           all_hold(part_.where, record);
  }

  std::vector<FiguredRow> figured_rows() {
    std::vector<FiguredRow> rows;
    for (const EvidenceRow& row : evidence_.rows()) {
      if (!is_wanted(row.record)) continue;
      if (row.record.status != Status::ok) {
        leave_out(std::string(status_name(row.record.status)));
      } else if (const auto figure = figure_of_row(row)) {
        rows.push_back({.row = &row, .figure = *figure});
      }
    }
    return rows;
  }

  std::optional<Figure> figure_of_row(const EvidenceRow& row) {
    std::optional<Figure> figure;
    if (part_.against) {
      const EvidenceRow* other = counterpart_of(part_, row, evidence_);
      if (other == nullptr) {
        leave_out("without an ok counterpart in their file");
        return std::nullopt;
      }
      figure = part_.statistic == Statistic::ratio ? ratio_of(part_.quantity, row, *other)
                                                   : ratio_of(part_.quantity, *other, row);
      if (figure) figure->two_devices = ran_on_two_devices(row.record, other->record);
    } else {
      figure = figure_of(part_.quantity, row);
      if (figure && part_.statistic == Statistic::reciprocal) figure = reciprocal(*figure);
    }
    if (!figure) leave_out("without the figure");
    return figure;
  }

  std::optional<Figure> reciprocal(const Figure& figure) const {
    if (!(figure.value > 0)) return std::nullopt;
    Figure result{.value = part_.scale / figure.value, .interval = std::nullopt, .simulated = figure.simulated};
    if (figure.interval && figure.interval->low > 0)
      result.interval =
          Interval{.low = part_.scale / figure.interval->high, .high = part_.scale / figure.interval->low};
    return result;
  }

  void add(const EvidenceRow& row, Fields problem, const Figure& figure) {
    measurement_.points.push_back({.variant = row.record.variant,
                                   .problem = std::move(problem),
                                   .device = evidence_.device_of(row),
                                   .value = figure.value,
                                   .interval = figure.interval,
                                   .simulated = figure.simulated,
                                   .two_devices = figure.two_devices,
                                   .file = row.file});
  }

  // Rows of one file, alike in all but the field that the statistic runs along.
  void add_groups(const std::vector<FiguredRow>& rows) {
    std::vector<std::vector<FiguredRow>> groups;
    std::map<std::tuple<std::size_t, std::string, std::string>, std::size_t> places;
    for (const FiguredRow& one : rows) {
      const Record& record = one.row->record;
      if (!place_of(record.problem, part_.along)) continue;
      const auto [place, is_new] = places.try_emplace(
          {one.row->file, record.variant, to_string(without(record.problem, part_.along))}, groups.size());
      if (is_new) groups.emplace_back();
      groups[place->second].push_back(one);
    }
    for (const auto& group : groups) add_group(group);
  }

  void add_group(const std::vector<FiguredRow>& group) {
    std::vector<AlongPoint> along;
    bool simulated = false;
    bool two_devices = false;
    for (const auto& [row, figure] : group) {
      along.push_back({.along = *place_of(row->record.problem, part_.along), .value = figure.value});
      simulated = simulated || figure.simulated;
      two_devices = two_devices || figure.two_devices;
    }
    if (part_.statistic == Statistic::share_of_best) return add_shares(group, along);
    const auto value = part_.statistic == Statistic::fitted_exponent ? fitted_exponent_along(along)
                       : part_.statistic == Statistic::crossover
                           ? crossover_along(along, part_.bound)
                           : largest_near_best_along(along, part_.near, part_.lower_is_better);
    if (!value) return leave_out("in groups too small for the statistic", static_cast<int>(group.size()));
    const EvidenceRow& first = *group.front().row;
    add(first, without(first.record.problem, part_.along),
        {.value = *value, .interval = std::nullopt, .simulated = simulated, .two_devices = two_devices});
  }

  void add_shares(const std::vector<FiguredRow>& group, const std::vector<AlongPoint>& along) {
    const double best = *best_along(along, part_.lower_is_better);
    for (const auto& [row, figure] : group) {
      if (!all_hold(part_.judged, row->record)) continue;
      if (group.size() < 2) {
        leave_out("in groups too small for the statistic");
        continue;
      }
      if (!(figure.value > 0)) {
        leave_out("without a figure above 0, to which a share is nothing");
        continue;
      }
      add(*row, row->record.problem,
          {.value = share_of_best(figure.value, best, part_.lower_is_better),
           .interval = std::nullopt,
           .simulated = figure.simulated});
    }
  }

  // What was measured again on the same device counts once, as measured last.
  void keep_latest() {
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> latest;
    const auto key = [](const ClaimPoint& point) {
      return std::tuple{point.variant, to_string(point.problem), point.device};
    };
    const std::vector<ClaimPoint>& points = measurement_.points;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const auto [place, is_new] = latest.try_emplace(key(points[i]), i);
      if (is_new) continue;
      leave_out("measured again later");
      const auto started = [&](std::size_t point) { return evidence_.files()[points[point].file].started_at; };
      if (started(i) > started(place->second)) place->second = i;
    }
    std::vector<ClaimPoint> kept;
    for (std::size_t i = 0; i < points.size(); ++i)
      if (latest.at(key(points[i])) == i) kept.push_back(points[i]);
    measurement_.points = std::move(kept);
  }

  void keep_measured() {
    std::vector<ClaimPoint>& points = measurement_.points;
    const auto measured = [](const ClaimPoint& point) { return !point.simulated; };
    const auto simulated = std::stable_partition(points.begin(), points.end(), measured);
    if (simulated == points.begin() || simulated == points.end()) return;
    measurement_.replaced.assign(simulated, points.end());
    points.erase(simulated, points.end());
    leave_out("simulated, where others were measured", static_cast<int>(measurement_.replaced.size()));
  }

  const ClaimPart& part_;
  const Evidence& evidence_;
  Measurement measurement_;
};

}  // namespace

Measurement measure(const ClaimPart& part, const Evidence& evidence) { return Measuring(part, evidence).run(); }

}  // namespace inferometer
