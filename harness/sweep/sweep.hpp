// A sweep: a question, and the rows that answer it. Made from a config file (docs/config.md).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure/timing.hpp"
#include "harness/operator/fields.hpp"
#include "harness/operator/operator.hpp"

namespace inferometer {

// Wrong use or config: exit code 2. The message names file, JSON path, what is allowed and the nearest word.
class ConfigError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Limits {
  double row_seconds = 120;
  std::optional<std::size_t> host_bytes;    // none: what the machine has free
  std::optional<std::size_t> device_bytes;  // none: what the device has free
};

struct SweepRow {
  std::string id;  // 12 hex digits: hash of operator, problem and variant
  std::string operator_name;
  std::string variant;
  Fields problem;           // every field of the operator, in its order
  std::string baseline_id;  // empty: the sweep has no baseline, or not for this problem
};

// Which part of a sweep this is, where it is not the whole (shard.hpp).
struct SweepShard {
  int index = 1;  // of 1 to count
  int count = 1;
  std::vector<std::string> sweep_rows = {};  // ids of all shards' rows, in the order of the sweep
};

struct Sweep {
  std::string path;  // of the config; what `reproduce` gives
  std::string name;
  std::string question;
  std::string operator_name;
  std::string config_text;    // the file as read
  std::string config_sha256;  // of the effective config: file, --set, --variants, --filter, --quick
  std::vector<SweepRow> rows;
  MeasureConfig measure;
  Limits limits;
  std::optional<SweepShard> shard = std::nullopt;
};

// What the command line changes in a config.
struct SweepOptions {
  std::vector<std::string> set = {};       // key=value: an axis or fixed field, or measure.KEY / limits.KEY
  std::vector<std::string> variants = {};  // replaces the config's list; globs allowed
  std::string filter = {};                 // an expression as in "where", over fields and "variant"
  std::string row = {};                    // one id, or a unique prefix
  bool quick = false;                      // first and last value of each axis, looser timing
};

// Throws ConfigError. A row with a baseline_id has that row in the same sweep.
Sweep load_sweep(const std::string& path, const SweepOptions& options);

// The same from the text of a config; `path` is its name in messages.
Sweep parse_sweep(const std::string& text, const std::string& path, const SweepOptions& options);

// The id of a row, the same in every file.
std::string row_id(const std::string& operator_name, const std::string& variant, const Fields& problem);

}  // namespace inferometer
