// inferometer list: the operators and variants of this program, and the experiments at hand.
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "experiments/command.hpp"
#include "experiments/project.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/operator/registry.hpp"
#include "harness/results/aligned.hpp"
#include "harness/results/record_json.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::vector<std::string> words(const std::vector<std::string_view>& views) { return {views.begin(), views.end()}; }

// --- operators ---------------------------------------------------------------------------------------------------

Json operators_json() {
  Json operators = Json::array();
  for (const Operator* op : all_operators()) {
    Json fields = Json::array();
    for (const FieldInfo& field : op->fields) {
      const Json value = fields_json({{field.name, field.default_value}});
      fields.push_back({{"name", field.name},
                        {"type", field.type},
                        {"doc", field.doc},
                        {"default", value.at(field.name)},
                        {"allowed", field.allowed.empty() ? Json(nullptr) : Json(field.allowed)}});
    }
    Json aliases = Json::array();
    for (const FieldAlias& alias : op->aliases)
      aliases.push_back({{"name", alias.name}, {"targets", words(alias.targets)}});
    Json metrics = Json::array();
    for (const MetricInfo& metric : op->metric_docs) metrics.push_back({{"name", metric.name}, {"doc", metric.doc}});
    operators.push_back({{"name", op->name},
                         {"summary", op->summary},
                         {"reference", op->reference},
                         {"fields", fields},
                         {"aliases", aliases},
                         {"metrics", metrics}});
  }
  return operators;
}

std::string operators_text() {
  std::string text;
  for (const Operator* op : all_operators()) {
    text += op->name + ": " + op->summary + "\n";
    Lines lines;
    for (const FieldInfo& field : op->fields) {
      const std::string allowed = field.allowed.empty() ? "" : " (" + joined(field.allowed) + ")";
      lines.push_back({field.name, field.type, to_string(field.default_value), field.doc + allowed});
    }
    for (const FieldAlias& alias : op->aliases)
      lines.push_back({std::string(alias.name), "alias", "", "sets " + joined(words(alias.targets))});
    text += aligned(lines, 2);
    Lines metrics;  // their names are longer than those of fields
    for (const MetricInfo& metric : op->metric_docs) metrics.push_back({metric.name, "metric", metric.doc});
    text += aligned(metrics, 2);
  }
  return text;
}

// --- variants ----------------------------------------------------------------------------------------------------

Json variants_json() {
  Json variants = Json::array();
  for (const Operator* op : all_operators()) {
    for (const Variant* variant : variants_of(op->name)) {
      variants.push_back({{"operator", op->name},
                          {"name", variant->name},
                          {"backend", variant->backend()},
                          {"min_sm", variant->min_sm > 0 ? Json(variant->min_sm) : Json(nullptr)},
                          {"summary", variant->summary},
                          {"not_built", or_null(variant->not_built)}});
    }
  }
  return variants;
}

std::string variants_text() {
  Lines lines;
  for (const Operator* op : all_operators()) {
    for (const Variant* variant : variants_of(op->name)) {
      const std::string sm = variant->min_sm > 0 ? "sm_" + std::to_string(variant->min_sm) : "-";
      const std::string reason = variant->not_built.empty() ? "" : " [" + variant->not_built + "]";
      lines.push_back({op->name, variant->name, sm, variant->summary + reason});
    }
  }
  return aligned(lines);
}

// --- experiments -------------------------------------------------------------------------------------------------

struct Experiment {
  std::string path;
  Sweep sweep;
  std::string error;  // non-empty: no config, and why
};

std::vector<Experiment> experiments() {
  std::error_code error;
  std::vector<Experiment> found;
  for (const std::string& path : experiment_paths(error)) found.push_back({.path = path, .sweep = {}, .error = {}});
  if (error) throw ConfigError("list: no folder of experiments in " + project_folder() + ": " + error.message());
  for (Experiment& experiment : found) {
    try {
      experiment.sweep = load_sweep(experiment.path, {});
    } catch (const ConfigError& refused) {
      experiment.error = refused.what();
    }
  }
  return found;
}

Json experiments_json() {
  Json result = Json::array();
  for (const Experiment& experiment : experiments()) {
    result.push_back({{"path", experiment.path},
                      {"name", or_null(experiment.sweep.name)},
                      {"question", or_null(experiment.sweep.question)},
                      {"operator", or_null(experiment.sweep.operator_name)},
                      {"rows", experiment.sweep.rows.size()},
                      {"error", or_null(experiment.error)}});
  }
  return result;
}

std::string experiments_text() {
  Lines lines;
  for (const Experiment& experiment : experiments()) {
    const Sweep& sweep = experiment.sweep;
    if (experiment.error.empty()) {
      lines.push_back({sweep.name, std::to_string(sweep.rows.size()) + " rows", sweep.question});
    } else {
      lines.push_back({std::filesystem::path(experiment.path).stem().string(), "invalid", experiment.error});
    }
  }
  return aligned(lines);
}

// -----------------------------------------------------------------------------------------------------------------

struct Listing {
  const char* name;
  Json (*json)();
  std::string (*text)();
};

constexpr Listing kListings[] = {{"operators", &operators_json, &operators_text},
                                 {"variants", &variants_json, &variants_text},
                                 {"experiments", &experiments_json, &experiments_text}};

struct Typed {
  std::string what;
  bool json = false;
};

std::vector<const Listing*> chosen_listings(const std::string& what) {
  std::vector<const Listing*> chosen;
  std::vector<std::string> names;
  for (const Listing& listing : kListings) {
    names.emplace_back(listing.name);
    if (what.empty() || what == listing.name) chosen.push_back(&listing);
  }
  if (chosen.empty()) throw ConfigError("list: " + unknown_word("list", what, names));
  return chosen;
}

// One listing is itself; all of them stand under their names.
int list(const Typed& typed) {
  const std::vector<const Listing*> chosen = chosen_listings(typed.what);
  Json all = Json::object();
  std::string text;
  for (const Listing* listing : chosen) {
    if (typed.json) {
      all[listing->name] = listing->json();
    } else {
      text +=
          (text.empty() ? "" : "\n") + (chosen.size() > 1 ? listing->name + std::string("\n") : "") + listing->text();
    }
  }
  if (typed.json)
    text = (chosen.size() > 1 ? all : all.front()).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  std::cout << text;
  return 0;
}

}  // namespace

Command add_list_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("list", "Show operators, variants and experiments");
  app->add_option("WHAT", typed->what, "operators, variants or experiments (default: all three)");
  app->add_flag("--json", typed->json, "As JSON");
  return {app, [typed](const Arguments&) { return list(*typed); }};
}

}  // namespace inferometer
