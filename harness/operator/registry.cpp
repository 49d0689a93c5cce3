#include "harness/operator/registry.hpp"
#include "harness/operator/variant_name.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

namespace inferometer {
namespace {

// Maps: sorted by name, and their elements never move, so pointers to them stay valid.
std::map<std::string, Operator, std::less<>>& operators() {
  static std::map<std::string, Operator, std::less<>> all;  // in a function: registration runs before main
  return all;
}

using Variants = std::map<std::string, Variant, std::less<>>;

std::map<std::string, Variants, std::less<>>& variants() {
  static std::map<std::string, Variants, std::less<>> all;
  return all;
}

// Registration runs before main, where nothing could catch an exception, and destructors may meet what is not made yet.
[[noreturn]] void refuse_registration(const std::string& sentence) {
  std::fprintf(stderr, "inferometer: registration: %s\n", sentence.c_str());
  constexpr int kWrongUse = 2;  // as of commands: no crash, nothing to debug
  std::_Exit(kWrongUse);
}

// Lower-case letters, digits and underscores: safe in globs, in comma-separated lists and in file names.
bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

bool is_variant_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos && is_word(name.substr(0, dot)) && is_word(name.substr(dot + 1));
}

void register_operator(Operator op) {
  if (!is_word(op.name)) refuse_registration("operator '" + op.name + "': a name is made of a-z, 0-9 and _");
  const std::string name = op.name;
  if (!operators().emplace(name, std::move(op)).second)
    refuse_registration("operator '" + name + "' is registered twice");
}

void register_variant(Variant variant) {
  const std::string where = "variant '" + variant.operator_name + "/" + variant.name + "'";
  if (!is_variant_name(variant.name))
    refuse_registration(where + ": a name is '<backend>.<method>', each made of a-z, 0-9 and _");
  if (!variant.not_built.empty())
    variant.unsupported = [reason = variant.not_built](const void*) { return std::optional<std::string>(reason); };
  Variants& of_operator = variants()[variant.operator_name];
  const std::string name = variant.name;
  if (!of_operator.emplace(name, std::move(variant)).second) refuse_registration(where + " is registered twice");
}

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> result;
  for (const auto& [name, op] : operators()) result.push_back(&op);
  return result;
}

std::vector<const Variant*> variants_of(std::string_view operator_name) {
  std::vector<const Variant*> result;
  const auto found = variants().find(operator_name);
  if (found == variants().end()) return result;
  for (const auto& [name, variant] : found->second) result.push_back(&variant);
  return result;
}

const Operator* find_operator(std::string_view name) {
  const auto found = operators().find(name);
  return found == operators().end() ? nullptr : &found->second;
}

const Variant* find_variant(std::string_view operator_name, std::string_view name) {
  const auto of_operator = variants().find(operator_name);
  if (of_operator == variants().end()) return nullptr;
  const auto found = of_operator->second.find(name);
  return found == of_operator->second.end() ? nullptr : &found->second;
}

}  // namespace inferometer
