// Runs of the operator serving for tests: small problems, runs that the judge passed.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/serving/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline constexpr const char* kServingPolicies[] = {"static", "iteration", "continuous", "chunked"};

inline Value integer(std::int64_t value) { return value; }

// 40 requests of the tiny shape in 4 slots; `more` replaces and adds.
inline Fields serving_fields(const Fields& more = {}) {
  Fields fields = {{"model", std::string("tiny")}, {"requests", integer(40)},    {"max_prompt", integer(60)},
                   {"max_output", integer(30)},    {"slots", integer(4)},        {"max_length", integer(128)},
                   {"block_size", integer(16)},    {"token_budget", integer(16)}};
  for (const auto& one : more) {
    std::erase_if(fields, [&](const auto& field) { return field.first == one.first; });
    fields.push_back(one);
  }
  return fields;
}

inline ServingProblem serving_problem(const Fields& more = {}) {
  return *static_cast<const ServingProblem*>(find_operator("serving")->parse(serving_fields(more)).get());
}

// The bytes of so many tokens of the tiny shape's cache.
inline Value pool_of(std::int64_t tokens) {
  const DecoderShape& shape = decoder_shape("tiny");
  return tokens * 2 * shape.layers * shape.kv_size() * 2;
}

// A run that its judge passed, as it stands in the output.
inline ServingRun run_serving(const std::string& variant, const Fields& more = {}) {
  const VariantRun run = run_variant("serving", variant, serving_fields(more));
  INFO(variant << ": " << run.unsupported << run.check.reason);
  REQUIRE(run.unsupported.empty());
  REQUIRE(run.check.passed);
  const auto problem = find_operator("serving")->parse(serving_fields(more));
  std::vector<std::int32_t> elements(run.raw.at("run").size() / sizeof(std::int32_t));
  std::memcpy(elements.data(), run.raw.at("run").data(), run.raw.at("run").size());
  return read_run(*static_cast<const ServingProblem*>(problem.get()), elements.data());
}

}  // namespace inferometer::test
