// The templates of fields.hpp. What does not depend on the Problem type is in fields.cpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace detail {

// Fields with every alias replaced by its targets. Throws ProblemError for unknown names and for one given twice.
Fields expand_aliases(const std::vector<std::string>& names, const std::vector<FieldAlias>& aliases,
                      const Fields& given);

// A value as the type of its field. Throws ProblemError naming the field, what is allowed and what came.
std::int64_t read_integer(std::string_view name, std::int64_t min, std::int64_t max, const Value& value);
std::vector<std::int64_t> read_integers(std::string_view name, std::int64_t min, std::int64_t max, const Value& value);
bool read_boolean(std::string_view name, const Value& value);
Dtype read_dtype(std::string_view name, const std::vector<Dtype>& allowed, const Value& value);
double read_real(std::string_view name, double min, double max, const Value& value);  // an integer will do
std::string read_text(std::string_view name, const std::vector<std::string>& allowed, const Value& value);

std::vector<std::string> dtype_names(const std::vector<Dtype>& dtypes);

template <class Member>
constexpr std::string_view type_name() {
  if constexpr (std::is_same_v<Member, std::int64_t>) return "integer";
  if constexpr (std::is_same_v<Member, bool>) return "boolean";
  if constexpr (std::is_same_v<Member, Dtype>) return "dtype";
  if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>) return "integer list";
  if constexpr (std::is_same_v<Member, double>) return "number";
  if constexpr (std::is_same_v<Member, std::string>) return "text";
}

template <class Problem, class Member>
void assign(const Field<Problem>& field, Member& member, const Value& value) {
  if constexpr (std::is_same_v<Member, std::int64_t>) member = read_integer(field.name, field.min, field.max, value);
  if constexpr (std::is_same_v<Member, bool>) member = read_boolean(field.name, value);
  if constexpr (std::is_same_v<Member, Dtype>) member = read_dtype(field.name, field.dtypes, value);
  if constexpr (std::is_same_v<Member, std::vector<std::int64_t>>)
    member = read_integers(field.name, field.min, field.max, value);
  if constexpr (std::is_same_v<Member, double>) member = read_real(field.name, field.real_min, field.real_max, value);
  if constexpr (std::is_same_v<Member, std::string>) member = read_text(field.name, field.words, value);
}

template <class Member>
Value as_value(const Member& member) {
  if constexpr (std::is_same_v<Member, Dtype>) {
    return std::string(dtype_name(member));
  } else {
    return member;
  }
}

}  // namespace detail

template <class Problem>
Problem problem_from_fields(const std::vector<Field<Problem>>& description, const std::vector<FieldAlias>& aliases,
                            const Fields& given) {
  std::vector<std::string> names;
  names.reserve(description.size());
  for (const Field<Problem>& field : description) names.emplace_back(field.name);
  Problem problem{};
  for (const auto& [name, value] : detail::expand_aliases(names, aliases, given)) {
    const auto index = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    const Field<Problem>& field = description[index];
    const Value& given_value = value;  // a structured binding cannot be captured
    std::visit([&](auto member) { detail::assign(field, problem.*member, given_value); }, field.member);
  }
  return problem;
}

template <class Problem>
Fields fields_from_problem(const std::vector<Field<Problem>>& description, const Problem& problem) {
  Fields fields;
  fields.reserve(description.size());
  for (const Field<Problem>& field : description)
    std::visit([&](auto member) { fields.emplace_back(field.name, detail::as_value(problem.*member)); }, field.member);
  return fields;
}

template <class Problem>
std::vector<FieldInfo> field_infos(const std::vector<Field<Problem>>& description) {
  static const Problem defaults{};  // static: g++ 12 takes a local read through member pointers for uninitialized
  std::vector<FieldInfo> infos;
  for (const Field<Problem>& field : description) {
    const auto add = [&](auto member) {
      infos.push_back({.name = std::string(field.name),
                       .type = std::string(detail::type_name<std::remove_cvref_t<decltype(defaults.*member)>>()),
                       .doc = std::string(field.doc),
                       .default_value = detail::as_value(defaults.*member),
                       .allowed = field.words.empty() ? detail::dtype_names(field.dtypes) : field.words,
                       .default_unsaid = field.default_unsaid});
    };
    std::visit(add, field.member);
  }
  return infos;
}

}  // namespace inferometer
