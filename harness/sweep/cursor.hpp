// A value within a config, and where it stands: typed reading whose errors name the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/sweep/json_reader.hpp"

namespace inferometer {

class Cursor {
 public:
  // `source` is a file's path or an option of the command line; `value` outlives the cursor.
  Cursor(std::string source, const Json& value, std::string pointer = {})
      : source_(std::move(source)), pointer_(std::move(pointer)), value_(&value) {}

  std::string place() const;                                   // "a.json: /axes/seq_len"
  [[noreturn]] void fail(const std::string& sentence) const;   // ConfigError "<place>: <sentence>"
  [[noreturn]] void refuse(const std::string& allowed) const;  // fail("must be <allowed>, got ...")

  const Json& json() const { return *value_; }
  bool is_null() const { return value_->is_null(); }

  std::string string() const;
  std::int64_t integer(std::int64_t min, std::int64_t max) const;
  double number_above(double bound, double max) const;  // bound < number <= max

  // A field's value: boolean, number, string, or a list of integers.
  Value value() const;

  // Of an array of at least `min` elements, and at most a million.
  std::vector<Cursor> items(std::size_t min) const;

  // Of an object, in the order of the file.
  std::vector<std::pair<std::string, Cursor>> members() const;
  std::optional<Cursor> find(const std::string& key) const;
  Cursor required(const std::string& key) const;
  void allow_keys(const std::vector<std::string>& allowed) const;

 private:
  std::string source_;
  std::string pointer_;
  const Json* value_;
};

}  // namespace inferometer
