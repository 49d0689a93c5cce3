#include "harness/claims/claim_part_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/config.hpp"
#include "harness/sweep/field_names.hpp"
#include "harness/sweep/glob.hpp"

namespace inferometer {
namespace {

double number(const Cursor& value) {
  if (!value.json().is_number() || !std::isfinite(value.json().get<double>())) value.refuse("a number");
  return value.json().get<double>();
}

// `table` holds pairs of a value and its name.
template <class T, class Table>
T named(const Cursor& value, const std::string& kind, const Table& table) {
  const std::string name = value.string();
  std::vector<std::string> known;
  for (const auto& [item, text] : table) {
    if (text == name) return item;
    known.emplace_back(text);
  }
  value.fail(unknown_word(kind, name, known));
}

constexpr std::array<std::pair<bool, std::string_view>, 2> kBetterNames{{{false, "higher"}, {true, "lower"}}};

// Variants of other frameworks are known only where their adapters lie: a backend that no variant here has is taken as
// it stands, unless it looks like a slip.
void require_variant(const Cursor& value, const std::string& pattern, const Operator& op) {
  const std::vector<std::string> known = variant_names(op);
  const auto backend = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const auto matches = [&](const std::string& name) { return glob_matches(pattern, name); };
  const auto is_neighbour = [&](const std::string& name) { return backend(name) == backend(pattern); };
  if (std::any_of(known.begin(), known.end(), matches)) return;
  const bool foreign = pattern.find('.') != std::string::npos && std::none_of(known.begin(), known.end(), is_neighbour);
  if (!foreign || !nearest_word(pattern, known).empty())
    value.fail(unknown_word("variant of " + op.name, pattern, known));
}

void require_field(const Cursor& value, const std::string& name, const Operator& op) {
  const auto is_named = [&](const FieldInfo& field) { return field.name == name; };
  if (std::none_of(op.fields.begin(), op.fields.end(), is_named))
    value.fail(unknown_word("field of " + op.name, name, field_names(op)));
}

std::vector<Condition> read_conditions(const Cursor& part, const std::string& key, const Operator& op) {
  std::vector<Condition> conditions;
  if (const auto list = part.find(key))
    for (const Cursor& item : list->items(0)) conditions.push_back(read_condition(item, op));
  return conditions;
}

// "time", "metrics.NAME" or "memory.ROLE".
Quantity read_quantity(const Cursor& value, const Operator& op) {
  const std::string text = value.string();
  constexpr std::string_view kMetrics = "metrics.";
  constexpr std::string_view kMemory = "memory.";
  if (text == "time") return {};
  if (text.starts_with(kMemory) && text.size() > kMemory.size())
    return {.kind = Quantity::Kind::memory, .name = text.substr(kMemory.size())};
  if (!text.starts_with(kMetrics)) value.refuse("'time', 'metrics.NAME' or 'memory.ROLE'");
  Quantity quantity{.kind = Quantity::Kind::metric, .name = text.substr(kMetrics.size())};
  std::vector<std::string> known;
  for (const MetricInfo& metric : op.metric_docs) known.push_back(metric.name);
  if (std::find(known.begin(), known.end(), quantity.name) == known.end())
    value.fail(unknown_word("metric of " + op.name, quantity.name, known));
  return quantity;
}

Counterpart read_counterpart(const Cursor& value, const Operator& op) {
  value.allow_keys({"variant", "problem"});
  Counterpart counterpart;
  if (const auto variant = value.find("variant")) {
    if (variant->json().is_object()) {
      for (const auto& [from, to] : variant->members()) {
        require_variant(*variant, from, op);
        require_variant(to, to.string(), op);
        counterpart.variants[from] = to.string();
      }
    } else {
      counterpart.variant = variant->string();
      require_variant(*variant, counterpart.variant, op);
    }
  }
  if (const auto problem = value.find("problem")) {
    for (const auto& [name, field] : problem->members()) {
      require_field(field, name, op);
      counterpart.replaced.emplace_back(name, field.value());
    }
  }
  if (counterpart.variant.empty() && counterpart.variants.empty() && counterpart.replaced.empty())
    value.fail("names neither another variant nor another problem");
  return counterpart;
}

AcceptedRange read_range(const Cursor& value) {
  value.allow_keys({"min", "max"});
  AcceptedRange range;
  if (const auto min = value.find("min")) range.min = number(*min);
  if (const auto max = value.find("max")) range.max = number(*max);
  if (!range.min && !range.max) value.fail("needs 'min', 'max' or both");
  if (range.min && range.max && *range.min > *range.max) value.fail("'min' is above 'max'");
  return range;
}

// What a statistic needs beside the quantity; keys of the others mean nothing to it, and are refused.
std::vector<std::string> needs_of(Statistic statistic) {
  switch (statistic) {
    case Statistic::value: return {};
    case Statistic::reciprocal: return {"scale"};
    case Statistic::ratio:
    case Statistic::inverse_ratio: return {"against"};
    case Statistic::fitted_exponent: return {"along"};
    case Statistic::share_of_best: return {"along", "better", "judged"};
    case Statistic::largest_near_best: return {"along", "better", "near"};
    case Statistic::crossover: return {"against", "along", "bound"};
  }
  return {};
}

void check_needs(const Cursor& part, const std::string& statistic, const std::vector<std::string>& needs) {
  for (const char* key : {"scale", "against", "along", "better", "judged", "near", "bound"}) {
    const bool needed = std::find(needs.begin(), needs.end(), key) != needs.end();
    const auto given = part.find(key);
    if (needed && !given) part.fail("the statistic '" + statistic + "' needs the key '" + std::string(key) + "'");
    if (!needed && given) given->fail("means nothing to the statistic '" + statistic + "'");
  }
}

}  // namespace

std::string words_from(const Cursor& value) {
  std::string text = value.string();
  if (text.empty()) value.refuse("a string that says something");
  return text;
}

std::string optional_words(const Cursor& object, const std::string& key) {
  const auto member = object.find(key);
  return member ? words_from(*member) : std::string();
}

ClaimPart read_claim_part(const Cursor& value, const Cursor& claim) {
  value.allow_keys({"name", "experiment", "operator", "variants", "where", "statistic", "quantity", "scale", "against",
                    "along", "better", "judged", "near", "bound", "claimed", "accepted", "role"});
  ClaimPart part;
  part.name = words_from(value.required("name"));
  part.experiment = words_from(value.required("experiment"));
  part.op = read_operator(value.required("operator"));
  for (const Cursor& item : value.required("variants").items(1)) {
    part.variants.push_back(item.string());
    require_variant(item, part.variants.back(), *part.op);
  }
  for (const Cursor& from : {claim, value})
    for (Condition& condition : read_conditions(from, "where", *part.op)) part.where.push_back(std::move(condition));
  const Cursor statistic = value.required("statistic");
  part.statistic = named<Statistic>(statistic, "statistic", kStatisticNames);
  check_needs(value, statistic.string(), needs_of(part.statistic));
  part.quantity = read_quantity(value.required("quantity"), *part.op);
  part.judged = read_conditions(value, "judged", *part.op);
  if (const auto against = value.find("against")) part.against = read_counterpart(*against, *part.op);
  if (const auto along = value.find("along")) {
    part.along = along->string();
    require_field(*along, part.along, *part.op);
  }
  if (const auto scale = value.find("scale")) part.scale = number(*scale);
  if (const auto near = value.find("near")) part.near = near->number_above(0, 1);
  if (const auto bound = value.find("bound")) part.bound = number(*bound);
  if (const auto better = value.find("better")) part.lower_is_better = named<bool>(*better, "order", kBetterNames);
  part.claimed = optional_words(value, "claimed");
  if (const auto role = value.find("role")) part.role = named<PartRole>(*role, "role", kRoleNames);
  if (const auto accepted = value.find("accepted")) {
    part.accepted = read_range(*accepted);
  } else if (part.role != PartRole::beside) {
    value.fail("the key 'accepted' is missing; only a part whose role is 'beside' goes without");
  }
  return part;
}

}  // namespace inferometer
