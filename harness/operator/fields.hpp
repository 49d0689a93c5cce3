// A problem as named fields: what a sweep sets, what a results file records. Host only.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "harness/operator/dtype.hpp"

namespace inferometer {

using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Fields = std::vector<std::pair<std::string, Value>>;  // in the operator's order

std::string to_string(const Value& value);    // "128", "true", "f16", "[1, 2]"
std::string to_string(const Fields& fields);  // "batch=1 q_len=512 ..."

// A problem that cannot be: the field at fault and a sentence that says what is allowed. what() is the sentence, so
// it names the field itself: ProblemError("kv_heads", "kv_heads must divide q_heads (16), got 3").
class ProblemError : public std::invalid_argument {
 public:
  ProblemError(std::string field, const std::string& sentence);
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

// Functions, since g++ 12 crashes on `= {}` in the template below.
inline std::vector<Dtype> no_dtypes() { return {}; }
inline std::vector<std::string> no_words() { return {}; }

// One field of an operator's Problem struct. Integers and list elements lie in [min, max], numbers in
// [real_min, real_max].
template <class Problem>
struct Field {
  std::string_view name;
  std::variant<std::int64_t Problem::*, bool Problem::*, Dtype Problem::*, std::vector<std::int64_t> Problem::*,
               double Problem::*, std::string Problem::*>
      member;
  std::string_view doc;  // meaning and unit, shown by `list operators`
  std::int64_t min = 1;
  std::int64_t max = std::int64_t{1} << 40;
  std::vector<Dtype> dtypes = no_dtypes();      // allowed, for a Dtype field
  std::vector<std::string> words = no_words();  // allowed, for a text field; empty: any text
  double real_min = 0;
  double real_max = std::numeric_limits<double>::max();
  bool default_unsaid = false;  // a table's heading leaves the default out even where a sweep names the field
};

// A name that sets several fields at once: seq_len for q_len and kv_len.
struct FieldAlias {
  std::string_view name;
  std::vector<std::string_view> targets;
};

// What `list` and error messages need to know of a field, its type erased.
struct FieldInfo {
  std::string name;
  std::string type;  // "integer", "boolean", "dtype", "integer list", "number", "text"
  std::string doc;
  Value default_value;
  std::vector<std::string> allowed;  // dtypes or words; empty: no such list
  bool default_unsaid = false;
};

// Reads `given` into a Problem, field by field; aliases are expanded first.
// Throws ProblemError for an unknown, doubly given, mistyped or out-of-range field.
template <class Problem>
Problem problem_from_fields(const std::vector<Field<Problem>>& description, const std::vector<FieldAlias>& aliases,
                            const Fields& given);

template <class Problem>
Fields fields_from_problem(const std::vector<Field<Problem>>& description, const Problem& problem);

template <class Problem>
std::vector<FieldInfo> field_infos(const std::vector<Field<Problem>>& description);

// Product of sizes. Throws ProblemError naming `field` when it passes 2^63 - 1.
std::int64_t checked_product(std::string_view field, std::initializer_list<std::int64_t> factors);
std::int64_t checked_product(std::string_view field, std::span<const std::int64_t> factors);

}  // namespace inferometer

#include "harness/operator/fields_impl.hpp"
