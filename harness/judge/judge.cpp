#include "harness/judge/judge.hpp"

#include <omp.h>

#include <algorithm>
#include <stdexcept>

#include "harness/judge/tensor_check.hpp"

namespace inferometer {

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
    const Tolerance allowed = tolerance(output.spec->name);
    const TensorCheck tensor = check_tensor(output, expected, allowed, threads);
    check.outputs_total += output.spec->elements();
    check.outputs_checked += tensor.checked;
    if (check.reason.empty()) check.reason = tensor.complaint;
    check.passed = check.reason.empty();
    if (tensor.excess <= greatest_excess || output.spec->elements() == 0) continue;
    greatest_excess = tensor.excess;
    check.max_abs_error = tensor.max_abs_error;
    check.rel_l2_error = tensor.rel_l2_error;
    check.tolerance_rel_l2 = allowed.rel_l2;
    check.worst_tensor = output.spec->name;
    check.worst_index = index_in(output.spec->shape, tensor.worst_element);
  }
  return check;
}

}  // namespace inferometer
