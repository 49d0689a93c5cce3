// The record of a row before anything is known of it, or that never came to an answer.
#pragma once

#include <string>
#include <utility>

#include "harness/results/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

inline Record row_record(const SweepRow& row, Status status = Status::error, std::string reason = {}) {
  Record record;
  record.id = row.id;
  record.operator_name = row.operator_name;
  record.variant = row.variant;
  record.backend = row.variant.substr(0, row.variant.find('.'));
  record.problem = row.problem;
  record.status = status;
  record.reason = std::move(reason);
  return record;
}

}  // namespace inferometer
