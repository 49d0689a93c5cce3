#include "harness/judge/tensor_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <vector>

#include "harness/judge/scan.hpp"

namespace inferometer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string number(double value, int digits = 9) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string brief(double value) { return number(value, 3); }

std::string place(const TensorSpec& spec, std::int64_t element) {  // "o[0, 3, 17, 5]"
  std::string text;
  for (const std::int64_t i : index_in(spec.shape, element)) text += (text.empty() ? "" : ", ") + std::to_string(i);
  return spec.name + "[" + text + "]";
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

  double magnitude(double floor) const {
    return count == 0 ? floor : std::max(floor, std::sqrt(expected / static_cast<double>(count)));
  }
  double relative_error(double floor) const {
    return count == 0 ? 0 : ratio(std::sqrt(error / static_cast<double>(count)), magnitude(floor));
  }
  void add(const Sums& other) {
    error += other.error;
    expected += other.expected;
    count += other.count;
  }
};

// One span against the output: its sums, and its finite element that is furthest off.
struct Row {
  std::int64_t begin = 0;
  Sums sums;
  double max_error = -1;  // below any error, so that the first finite element is taken
  std::int64_t worst = 0;
  double worst_value = 0;
  double worst_expected = 0;
};

class TensorJudge {
 public:
  TensorJudge(const OutputView& output, const Tolerance& tolerance) : output_(output), tolerance_(tolerance) {}

  void look_at_all(bool may_be_infinite, int threads);
  void compare(const ExpectedSpan& span);
  TensorCheck verdict();

 private:
  // Keeps the first complaint, and with it the element it is about.
  void complain(std::int64_t element, const std::string& sentence) {
    if (!check_.complaint.empty()) return;
    check_.complaint = sentence;
    check_.worst_element = element;
  }
  void complain_of(const Findings& findings, const std::string& is);
  void hold_against_tolerance();
  std::string worst_of(const Row& row) const {
    return place(*output_.spec, row.worst) + " is " + number(row.worst_value) + ", expected " +
           number(row.worst_expected);
  }

  const OutputView& output_;
  const Tolerance& tolerance_;
  std::vector<Row> rows_;
  TensorCheck check_;
};

void TensorJudge::complain_of(const Findings& findings, const std::string& is) {
  if (findings.count == 0) return;
  check_.excess = kInfinity;
  complain(findings.first, place(*output_.spec, findings.first) + " " + is + " (" + std::to_string(findings.count) +
                               " such elements of " + std::to_string(output_.spec->elements()) + ")");
}

void TensorJudge::look_at_all(bool may_be_infinite, int threads) {
  const Scan scan = scan_output(*output_.spec, output_.data, threads);
  const bool integers = output_.spec->dtype == Dtype::i32 || output_.spec->dtype == Dtype::u8;
  complain_of(scan.unwritten, integers ? "was never written, or holds the poison's bits"
                                       : "was never written, or is a NaN with the poison's bits");
  complain_of(scan.nan, "is nan");
  if (!may_be_infinite) complain_of(scan.infinite, "is infinite");
  complain_of(scan.overwritten, "was written, but is no part of the answer");
}

void TensorJudge::compare(const ExpectedSpan& span) {
  const auto count = static_cast<std::int64_t>(span.values.size());
  const TensorSpec& spec = *output_.spec;
  if (span.begin < 0 || span.begin > spec.elements() - count)
    throw std::logic_error("expected values from " + std::to_string(span.begin) + " on do not fit tensor " + spec.name +
                           " of " + std::to_string(spec.elements()) + " elements");
  const std::vector<float> values = to_floats(spec.dtype, output_.data, span.begin, count);
  Row row;
  row.begin = span.begin;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    const double expected = span.values[i];
    const std::int64_t element = span.begin + static_cast<std::int64_t>(i);
    if (!std::isfinite(value) || !std::isfinite(expected)) {
      if (value == expected) continue;  // the same infinity; a NaN equals nothing
      check_.excess = kInfinity;
      complain(element, place(spec, element) + " is " + number(value) + ", expected " + number(expected));
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
  check_.checked += count;
  if (row.sums.count > 0) rows_.push_back(row);
}

// The three criteria of Tolerance.
void TensorJudge::hold_against_tolerance() {
  if (rows_.empty()) return;  // infinities alone
  const double floor = tolerance_.rms_floor;
  Sums all;
  for (const Row& row : rows_) all.add(row.sums);
  const auto row_error = [&](const Row& row) { return row.sums.relative_error(floor); };
  const auto element_error = [&](const Row& row) {
    return ratio(row.max_error, std::max(row.sums.magnitude(floor), all.magnitude(floor)));
  };
  const auto furthest = [&](const auto& measure) -> const Row& {
    return *std::max_element(rows_.begin(), rows_.end(),
                             [&](const Row& a, const Row& b) { return measure(a) < measure(b); });
  };
  const Row& worst = furthest([](const Row& row) { return row.max_error; });
  const Row& worst_row = furthest(row_error);
  const Row& worst_element = furthest(element_error);

  check_.max_abs_error = worst.max_error;
  check_.rel_l2_error = all.relative_error(floor);
  if (check_.complaint.empty()) check_.worst_element = worst.worst;
  check_.excess = std::max({check_.excess, ratio(check_.rel_l2_error, tolerance_.rel_l2),
                            ratio(row_error(worst_row), tolerance_.row_rel_l2),
                            ratio(element_error(worst_element), tolerance_.max_error_over_rms)});
  if (check_.rel_l2_error > tolerance_.rel_l2)
    complain(worst.worst, output_.spec->name + ": relative L2 error " + brief(check_.rel_l2_error) + " over " +
                              std::to_string(all.count) + " elements, at most " + brief(tolerance_.rel_l2) +
                              " allowed; " + worst_of(worst));
  if (row_error(worst_row) > tolerance_.row_rel_l2)
    complain(worst_row.worst, output_.spec->name + ": relative L2 error " + brief(row_error(worst_row)) +
                                  " in the row from " + place(*output_.spec, worst_row.begin) + " on, at most " +
                                  brief(tolerance_.row_rel_l2) + " allowed; " + worst_of(worst_row));
  if (element_error(worst_element) > tolerance_.max_error_over_rms)
    complain(worst_element.worst, worst_of(worst_element) + ": an error of " + brief(element_error(worst_element)) +
                                      " root mean squares, at most " + brief(tolerance_.max_error_over_rms) +
                                      " allowed");
}

TensorCheck TensorJudge::verdict() {
  if (check_.checked == 0 && output_.spec->elements() > 0)
    throw std::logic_error("no expected values for output tensor " + output_.spec->name);
  hold_against_tolerance();
  return check_;
}

}  // namespace

std::vector<std::int64_t> index_in(const std::vector<std::int64_t>& shape, std::int64_t element) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) index[axis] = element % shape[axis];
  return index;
}

TensorCheck check_tensor(const OutputView& output, std::span<const ExpectedSpan> expected, const Tolerance& tolerance,
                         int threads) {
  const auto is_infinite = [](double value) { return std::isinf(value); };
  bool may_be_infinite = false;
  for (const ExpectedSpan& span : expected)
    if (span.tensor == output.spec->name)
      may_be_infinite = may_be_infinite || std::any_of(span.values.begin(), span.values.end(), is_infinite);

  TensorJudge tensor(output, tolerance);
  tensor.look_at_all(may_be_infinite, threads);
  for (const ExpectedSpan& span : expected)
    if (span.tensor == output.spec->name) tensor.compare(span);
  return tensor.verdict();
}

}  // namespace inferometer
