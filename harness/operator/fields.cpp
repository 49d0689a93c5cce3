#include "harness/operator/fields.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

#include "harness/operator/nearest_word.hpp"

namespace inferometer {
namespace {

std::string number_text(double value) {
  std::array<char, 32> buffer{};  // the shortest text that reads back as the same double has at most 24 characters
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";  // told apart from an integer
  return text;
}

// How a message shows what came: strings in quotes, so that 'true' and true differ.
std::string shown(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return in_quotes(*text);
  return printable(to_string(value));
}

[[noreturn]] void refuse(std::string_view name, const std::string& allowed, const std::string& came) {
  const std::string field(name);
  throw ProblemError(field, field + " must be " + allowed + ", got " + came);
}

[[noreturn]] void refuse_word(std::string_view name, const std::vector<std::string>& allowed, const Value& came) {
  const auto* text = std::get_if<std::string>(&came);
  const std::string nearest = text != nullptr ? nearest_word(*text, allowed) : std::string{};
  refuse(name, "one of " + joined(allowed), shown(came) + (nearest.empty() ? "" : ", nearest is '" + nearest + "'"));
}

std::string integer_range(std::int64_t min, std::int64_t max) {
  return "from " + std::to_string(min) + " to " + std::to_string(max);
}

}  // namespace

ProblemError::ProblemError(std::string field, const std::string& sentence)
    : std::invalid_argument(sentence), field_(std::move(field)) {}

std::string to_string(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::remove_cvref_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, std::int64_t>) {
          return std::to_string(held);
        } else if constexpr (std::is_same_v<Held, double>) {
          return number_text(held);
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else {
          std::string text;
          for (const std::int64_t element : held) text += (text.empty() ? "" : ", ") + std::to_string(element);
          return "[" + text + "]";
        }
      },
      value);
}

std::string to_string(const Fields& fields) {
  std::string text;
  for (const auto& [name, value] : fields) text += (text.empty() ? "" : " ") + name + "=" + to_string(value);
  return text;
}

std::int64_t checked_product(std::string_view field, std::initializer_list<std::int64_t> factors) {
  return checked_product(field, std::span<const std::int64_t>(factors.begin(), factors.size()));
}

std::int64_t checked_product(std::string_view field, std::span<const std::int64_t> factors) {
  if (std::find(factors.begin(), factors.end(), 0) != factors.end()) return 0;
  std::int64_t product = 1;
  bool fits = true;
  for (const std::int64_t factor : factors)
    fits = fits && factor > 0 && !__builtin_mul_overflow(product, factor, &product);
  if (fits) return product;
  std::string text;
  for (const std::int64_t factor : factors) text += (text.empty() ? "" : " x ") + std::to_string(factor);
  refuse(field, "a size below 2^63", text);
}

namespace detail {

Fields expand_aliases(const std::vector<std::string>& names, const std::vector<FieldAlias>& aliases,
                      const Fields& given) {
  Fields expanded;
  std::vector<std::string> givers;  // of each expanded field: the name it was given by
  const auto add = [&](std::string_view target, const std::string& giver, const Value& value) {
    for (std::size_t i = 0; i < expanded.size(); ++i) {
      if (expanded[i].first != target) continue;
      const std::string by = giver == givers[i] ? "" : " (by '" + givers[i] + "' and by '" + giver + "')";
      throw ProblemError(giver, "field '" + std::string(target) + "' is given twice" + by);
    }
    expanded.emplace_back(target, value);
    givers.push_back(giver);
  };
  for (const auto& [name, value] : given) {
    const std::string& word = name;  // a structured binding cannot be captured
    const auto alias =
        std::find_if(aliases.begin(), aliases.end(), [&](const FieldAlias& a) { return a.name == word; });
    if (alias != aliases.end()) {
      for (const std::string_view target : alias->targets) add(target, name, value);
    } else if (std::find(names.begin(), names.end(), name) != names.end()) {
      add(name, name, value);
    } else {
      std::vector<std::string> allowed = names;
      for (const FieldAlias& a : aliases) allowed.emplace_back(a.name);
      throw ProblemError(name, unknown_word("field", name, allowed));
    }
  }
  return expanded;
}

std::int64_t read_integer(std::string_view name, std::int64_t min, std::int64_t max, const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr || *integer < min || *integer > max)
    refuse(name, "an integer " + integer_range(min, max), shown(value));
  return *integer;
}

std::vector<std::int64_t> read_integers(std::string_view name, std::int64_t min, std::int64_t max, const Value& value) {
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list == nullptr) refuse(name, "a list of integers " + integer_range(min, max), shown(value));
  for (std::size_t i = 0; i < list->size(); ++i) {
    if ((*list)[i] < min || (*list)[i] > max) {
      refuse(name, "a list of integers " + integer_range(min, max),
             std::to_string((*list)[i]) + " at position " + std::to_string(i));
    }
  }
  return *list;
}

bool read_boolean(std::string_view name, const Value& value) {
  const auto* boolean = std::get_if<bool>(&value);
  if (boolean == nullptr) refuse(name, "true or false", shown(value));
  return *boolean;
}

Dtype read_dtype(std::string_view name, const std::vector<Dtype>& allowed, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  const auto dtype = text != nullptr ? parse_dtype(*text) : std::nullopt;
  if (dtype && std::find(allowed.begin(), allowed.end(), *dtype) != allowed.end()) return *dtype;
  refuse_word(name, dtype_names(allowed), value);
}

double read_real(std::string_view name, double min, double max, const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const double number = real != nullptr ? *real : integer != nullptr ? static_cast<double>(*integer) : 0;
  const bool is_number = real != nullptr || integer != nullptr;
  if (!is_number || !(number >= min && number <= max))  // NaN is within no range
    refuse(name, "a number from " + number_text(min) + " to " + number_text(max), shown(value));
  return number + 0.0;  // -0 becomes 0: one value, one text, one row id
}

std::string read_text(std::string_view name, const std::vector<std::string>& allowed, const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (allowed.empty() && text == nullptr) refuse(name, "a text", shown(value));
  if (!allowed.empty() && (text == nullptr || std::find(allowed.begin(), allowed.end(), *text) == allowed.end()))
    refuse_word(name, allowed, value);
  return *text;
}

std::vector<std::string> dtype_names(const std::vector<Dtype>& dtypes) {
  std::vector<std::string> names;
  names.reserve(dtypes.size());
  for (const Dtype dtype : dtypes) names.emplace_back(dtype_name(dtype));
  return names;
}

}  // namespace detail
}  // namespace inferometer
