#include "harness/sweep/cursor.hpp"

#include <algorithm>
#include <limits>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kMaxItems = 1'000'000;

std::optional<std::int64_t> as_integer(const Json& json) {
  if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return std::nullopt;
  if (json.is_number_integer()) return json.get<std::int64_t>();
  return std::nullopt;
}

// How a message shows what came.
std::string shown(const Json& json) {
  if (json.is_object()) return "an object";
  if (json.is_array()) return json.empty() ? "an empty array" : "an array";
  return json.is_string() ? in_quotes(json.get_ref<const std::string&>()) : json.dump();
}

}  // namespace

std::string Cursor::place() const { return pointer_.empty() ? source_ : source_ + ": " + pointer_; }

void Cursor::fail(const std::string& sentence) const { throw ConfigError(place() + ": " + sentence); }

void Cursor::refuse(const std::string& allowed) const { fail("must be " + allowed + ", got " + shown(*value_)); }

std::string Cursor::string() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

std::int64_t Cursor::integer(std::int64_t min, std::int64_t max) const {
  const auto integer = as_integer(*value_);
  if (!integer || *integer < min || *integer > max)
    refuse("an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return *integer;
}

double Cursor::number_above(double bound, double max) const {
  const double number = value_->is_number() ? value_->get<double>() : bound;
  if (!(number > bound && number <= max))
    refuse("a number above " + Json(bound).dump() + ", at most " + Json(max).dump());
  return number;
}

Value Cursor::value() const {
  if (value_->is_boolean()) return value_->get<bool>();
  if (value_->is_string()) return value_->get<std::string>();
  if (value_->is_number_float()) return value_->get<double>();
  if (const auto integer = as_integer(*value_)) return *integer;
  if (!value_->is_array()) refuse("true, false, an integer below 2^63, a number, a string or a list of integers");
  std::vector<std::int64_t> list;
  for (const Cursor& item : items(0))
    list.push_back(item.integer(std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
  return list;
}

std::vector<Cursor> Cursor::items(std::size_t min) const {
  if (!value_->is_array() || value_->size() < min) refuse(min == 0 ? "an array" : "an array with at least one element");
  if (value_->size() > kMaxItems)
    fail("must have at most " + std::to_string(kMaxItems) + " elements, got " + std::to_string(value_->size()));
  std::vector<Cursor> result;
  for (std::size_t i = 0; i < value_->size(); ++i)
    result.emplace_back(source_, (*value_)[i], json_pointer(pointer_, std::to_string(i)));
  return result;
}

std::vector<std::pair<std::string, Cursor>> Cursor::members() const {
  if (!value_->is_object()) refuse("an object");
  std::vector<std::pair<std::string, Cursor>> result;
  for (const auto& [key, member] : value_->items())
    result.emplace_back(key, Cursor(source_, member, json_pointer(pointer_, key)));
  return result;
}

std::optional<Cursor> Cursor::find(const std::string& key) const {
  const auto found = value_->find(key);
  if (found == value_->end()) return std::nullopt;
  return Cursor(source_, *found, json_pointer(pointer_, key));
}

Cursor Cursor::required(const std::string& key) const {
  if (auto member = find(key)) return *member;
  fail("the key '" + key + "' is missing");
}

void Cursor::allow_keys(const std::vector<std::string>& allowed) const {
  for (const auto& [key, member] : members())
    if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) fail(unknown_word("key", key, allowed));
}

}  // namespace inferometer
