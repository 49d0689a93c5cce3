// One row of a results file, and the run's environment: plain data. The JSON is in record_json.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/timing.hpp"
#include "harness/operator/fields.hpp"
#include "harness/operator/operator.hpp"

namespace inferometer {

enum class Status : std::uint8_t {
  ok,
  incorrect,
  unsupported,
  out_of_memory,
  crashed,
  timed_out,
  suspect,
  error,
};

// What the judge found. Errors are those of the worst output tensor.
struct Check {
  std::string reference;
  std::int64_t outputs_checked = 0;  // compared with the reference
  std::int64_t outputs_total = 0;    // looked at for having been written
  double max_abs_error = 0;
  double rel_l2_error = 0;
  double tolerance_rel_l2 = 0;
  std::string worst_tensor;
  std::vector<std::int64_t> worst_index;  // within worst_tensor's shape
  bool repeated_after_timing = false;
  bool passed = false;
  std::string reason;  // when not passed: tensor, index, both values, metric, tolerance
};

struct Rates {
  std::optional<double> flops_per_s;
  std::optional<double> bytes_per_s;
  std::string limit;  // "compute" or "memory": the ceiling that would be met first
  std::optional<double> fraction_of_ceiling;
};

struct Record {
  std::string id;
  std::string operator_name;
  std::string variant;
  std::string backend;
  std::string device;  // where it ran: "cpu", or the uuid of a GPU; empty: nowhere
  Fields problem;
  Status status = Status::error;
  std::string reason;
  std::optional<Check> check;
  std::optional<Timing> timing;  // only with status ok or suspect; so rates
  std::optional<Work> work;
  std::optional<Rates> rates;
  std::map<std::string, std::size_t> memory_bytes;  // by role, and "peak"
  std::vector<Metric> metrics;
  std::map<std::string, std::string> versions;  // of a peer and what it runs on; empty for our own variants
};

}  // namespace inferometer
