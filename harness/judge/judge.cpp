#include "harness/judge/judge.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "harness/judge/scan.hpp"

namespace inferometer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string brief(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::vector<std::int64_t> index_in(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) index[axis] = element % shape[axis];
  return index;
}

std::string place(const TensorSpec& spec, std::int64_t element) {  // "o[0, 3, 17, 5]"
  std::string text = spec.name + "[";
  for (const std::int64_t i : index_in(spec.shape, element))
    text += (text.back() == '[' ? "" : ", ") + std::to_string(i);
  return text + "]";
}

double ratio(double error, double magnitude) {
  if (error == 0) return 0;
  return magnitude == 0 ? kInfinity : error / magnitude;
}

// Sums of squares over the finite elements of a span, or of all spans of a tensor.
struct Sums {
  double error = 0;
  double expected = 0;
  std::int64_t count = 0;

  double magnitude(const Tolerance& tolerance) const {
    return count == 0 ? tolerance.rms_floor
                      : std::max(tolerance.rms_floor, std::sqrt(expected / static_cast<double>(count)));
  }
  double relative_error(const Tolerance& tolerance) const {
    return count == 0 ? 0 : ratio(std::sqrt(error / static_cast<double>(count)), magnitude(tolerance));
  }
  void add(const Sums& other) {
    error += other.error;
    expected += other.expected;
    count += other.count;
  }
};

// One span against the output: its sums, and its element that is furthest off.
struct Row {
  std::int64_t begin = 0;
  Sums sums;
  double max_error = -1;  // below any error, so that the first finite element is taken
  std::int64_t worst = 0;
  double worst_value = 0;
  double worst_expected = 0;
};

// The verdict on one tensor.
struct TensorCheck {
  const TensorSpec* spec = nullptr;
  Tolerance tolerance;
  std::int64_t checked = 0;
  Row worst;              // the row with the element furthest off
  double rel_l2 = 0;      // over all spans
  double excess = 0;      // greatest of the criteria, each as a multiple of what is allowed
  std::string complaint;  // empty: passed
};

std::string of_total(const Findings& findings, const TensorSpec& spec) {
  return " (" + std::to_string(findings.count) + " such elements of " + std::to_string(spec.elements()) + ")";
}

void complain(TensorCheck& check, const std::string& sentence, double excess = kInfinity) {
  check.excess = std::max(check.excess, excess);
  if (check.complaint.empty()) check.complaint = sentence;
}

// Measures one span. An infinity or a NaN where the other side has none is complained of at once.
Row compare_span(TensorCheck& check, const ExpectedSpan& span, const void* data) {
  const auto count = static_cast<std::int64_t>(span.values.size());
  const std::vector<float> values = to_floats(check.spec->dtype, data, span.begin, count);
  Row row;
  row.begin = span.begin;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double expected = span.values[i];
    const std::int64_t element = span.begin + static_cast<std::int64_t>(i);
    if (!std::isfinite(value) || !std::isfinite(expected)) {
      if (value != expected)
        complain(check, place(*check.spec, element) + " is " + number(value) + ", expected " + number(expected));
      continue;
    }
    const double error = std::abs(value - expected);
    row.sums.add({error * error, expected * expected, 1});
    if (error > row.max_error) {
      row.max_error = error;
      row.worst = element;
      row.worst_value = value;
      row.worst_expected = expected;
    }
  }
  return row;
}

std::string worst_element(const TensorCheck& check, const Row& row) {
  return place(*check.spec, row.worst) + " is " + number(row.worst_value) + ", expected " + number(row.worst_expected);
}

// Holds the three criteria of Tolerance against the rows of a tensor.
void apply_tolerance(TensorCheck& check, const std::vector<Row>& rows) {
  const Tolerance& tolerance = check.tolerance;
  Sums all;
  for (const Row& row : rows) all.add(row.sums);
  check.rel_l2 = all.relative_error(tolerance);

  const Row* far_row = nullptr;
  double row_error = 0;
  const Row* far_element = nullptr;
  double element_error = 0;
  for (const Row& row : rows) {
    if (row.sums.count == 0) continue;
    const double relative = row.sums.relative_error(tolerance);
    if (far_row == nullptr || relative > row_error) {
      far_row = &row;
      row_error = relative;
    }
    const double magnitude = std::max(row.sums.magnitude(tolerance), all.magnitude(tolerance));
    const double element = ratio(row.max_error, magnitude);
    if (far_element == nullptr || element > element_error) {
      far_element = &row;
      element_error = element;
    }
    if (row.max_error > check.worst.max_error) check.worst = row;
  }
  if (far_row == nullptr) return;  // infinities alone, and they agree

  check.excess = std::max({check.excess, ratio(check.rel_l2, tolerance.rel_l2), ratio(row_error, tolerance.row_rel_l2),
                           ratio(element_error, tolerance.max_error_over_rms)});
  if (check.rel_l2 > tolerance.rel_l2)
    complain(check, check.spec->name + ": relative L2 error " + brief(check.rel_l2) + " over " +
                        std::to_string(all.count) + " elements, at most " + brief(tolerance.rel_l2) + " allowed; " +
                        worst_element(check, check.worst));
  if (row_error > tolerance.row_rel_l2)
    complain(check, check.spec->name + ": relative L2 error " + brief(row_error) + " in the row from " +
                        place(*check.spec, far_row->begin) + " on, at most " + brief(tolerance.row_rel_l2) +
                        " allowed; " + worst_element(check, *far_row));
  if (element_error > tolerance.max_error_over_rms)
    complain(check, worst_element(check, *far_element) + ": an error of " + brief(element_error) +
                        " root mean squares, at most " + brief(tolerance.max_error_over_rms) + " allowed");
}

TensorCheck check_tensor(const OutputView& output, std::span<const ExpectedSpan> expected, const Tolerance& tolerance,
                         int threads) {
  const TensorSpec& spec = *output.spec;
  TensorCheck check;
  check.spec = &spec;
  check.tolerance = tolerance;
  const Scan scan = scan_output(spec.dtype, output.data, spec.elements(), threads);
  if (scan.unwritten.count > 0)
    complain(check, place(spec, scan.unwritten.first) + " was never written" + of_total(scan.unwritten, spec));
  if (scan.nan.count > 0) complain(check, place(spec, scan.nan.first) + " is nan" + of_total(scan.nan, spec));

  std::vector<Row> rows;
  bool expects_infinity = false;
  for (const ExpectedSpan& span : expected) {
    if (span.tensor != spec.name) continue;
    const auto count = static_cast<std::int64_t>(span.values.size());
    if (span.begin < 0 || span.begin > spec.elements() - count)
      throw std::logic_error("expected values from " + std::to_string(span.begin) + " on do not fit tensor " +
                             spec.name + " of " + std::to_string(spec.elements()) + " elements");
    rows.push_back(compare_span(check, span, output.data));
    check.checked += count;
    expects_infinity |= std::any_of(span.values.begin(), span.values.end(), [](double v) { return std::isinf(v); });
  }
  if (check.checked == 0 && spec.elements() > 0)
    throw std::logic_error("no expected values for output tensor " + spec.name);
  if (scan.infinite.count > 0 && !expects_infinity)
    complain(check, place(spec, scan.infinite.first) + " is infinite" + of_total(scan.infinite, spec));
  apply_tolerance(check, rows);
  return check;
}

}  // namespace

Check judge(std::span<const OutputView> outputs, std::span<const ExpectedSpan> expected,
            const std::function<Tolerance(std::string_view tensor)>& tolerance, std::string_view reference,
            int threads) {
  if (threads <= 0) threads = omp_get_num_procs();
  for (const ExpectedSpan& span : expected)
    if (std::none_of(outputs.begin(), outputs.end(), [&](const OutputView& o) { return o.spec->name == span.tensor; }))
      throw std::logic_error("expected values for " + span.tensor + ", which is no output tensor");

  Check check;
  check.reference = reference;
  check.passed = true;
  double greatest_excess = -1;
  for (const OutputView& output : outputs) {
    const TensorCheck tensor = check_tensor(output, expected, tolerance(output.spec->name), threads);
    check.outputs_total += output.spec->elements();
    check.outputs_checked += tensor.checked;
    if (!tensor.complaint.empty()) {
      check.passed = false;
      if (check.reason.empty()) check.reason = tensor.complaint;
    }
    if (tensor.excess <= greatest_excess) continue;
    greatest_excess = tensor.excess;
    check.max_abs_error = std::max(0.0, tensor.worst.max_error);
    check.rel_l2_error = tensor.rel_l2;
    check.tolerance_rel_l2 = tensor.tolerance.rel_l2;
    check.worst_tensor = output.spec->name;
    check.worst_index = index_in(output.spec->shape, tensor.worst.worst);
  }
  return check;
}

}  // namespace inferometer
