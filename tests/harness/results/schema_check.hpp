// Documents against results/schema.json, by a library.
#pragma once

// valijson brings the plain nlohmann adapter; our ordered documents are parsed again as plain ones.
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include <string>

#include "harness/results/json.hpp"
#include "tests/harness/run/child_run.hpp"

namespace inferometer::test {

// All complaints; empty when the document is valid.
inline std::string schema_complaint(const Json& document) {
  valijson::Schema schema;
  const auto text = nlohmann::json::parse(read_text(std::string(INFEROMETER_SOURCE_DIR) + "/results/schema.json"));
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  const auto plain = nlohmann::json::parse(document.dump());
  valijson::Validator validator(valijson::Validator::kStrongTypes);
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(plain), &results)) return "";
  valijson::ValidationResults::Error error;
  std::string complaints = "invalid";
  while (results.popError(error)) {
    complaints += "\n";
    for (const std::string& part : error.context) complaints += part;
    complaints += ": " + error.description;
  }
  return complaints;
}

}  // namespace inferometer::test
