#include "harness/results/summary.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

using Lines = std::vector<std::string>;

Json row(const char* variant, Json metrics, Json speedup = nullptr) {
  return {{"operator", "kv_memory"},
          {"variant", variant},
          {"speedup", std::move(speedup)},
          {"work", {{"flops", 0.0}, {"bytes", 0.0}, {"arithmetic", "f32"}}},
          {"metrics", std::move(metrics)}};
}

Json results(Json config, Json rows) { return {{"config", std::move(config)}, {"rows", std::move(rows)}}; }

}  // namespace

TEST_CASE("summary: without a baseline, range and median of the first headline metric of each variant", "[results]") {
  const char* const share = "kv_token_share_of_pool_under_load_ratio";
  const Json rows = {row("cpu.paged", {{share, 0.9}, {"preemptions", 7}}),
                     row("cpu.paged", {{share, 0.98}}),
                     row("cpu.reserve_max", {{share, 0.2}}),
                     row("cpu.paged", {{share, 0.95}}),
                     row("cpu.paged", {{share, nullptr}}),
                     row("cpu.failed", Json::object())};
  CHECK(summary_lines(results(Json::object(), rows)) ==
        Lines{"cpu.paged: kv token share of pool under load 90.0 % to 98.0 %, median 95.0 %, over 3 problems",
              "cpu.reserve_max: kv token share of pool under load 20.0 %, over 1 problem"});
}

TEST_CASE("summary: the first headline metric is the first that the file holds", "[results]") {
  CHECK(summary_lines(results(Json::object(), {row("cpu.paged", {{"preemptions", 7}, {"steps", 9}})})) ==
        Lines{"cpu.paged: preemptions 7, over 1 problem"});
}

TEST_CASE("summary: with a baseline, speed-ups and no metric", "[results]") {
  Json rows = {row("cpu.paged", {{"preemptions", 7}}, 2.0), row("cpu.reserve_max", {{"preemptions", 0}}, 1.0)};
  for (Json& timed : rows) timed["work"]["bytes"] = 8.0;
  CHECK(summary_lines(results({{"baseline", "cpu.reserve_max"}}, rows)) ==
        Lines{"cpu.paged: 2.00x as fast as cpu.reserve_max, over 1 problem"});
}

TEST_CASE("summary: of a simulation the metric, though it has a baseline", "[results]") {
  Json rows = {row("cpu.paged", {{"preemptions", 7}}, 0.06), row("cpu.reserve_max", {{"preemptions", 0}}, 1.0)};
  rows.push_back(row("cpu.failed", Json::object()));
  rows.back()["work"] = nullptr;
  CHECK(summary_lines(results({{"baseline", "cpu.reserve_max"}}, rows)) ==
        Lines{"cpu.paged: preemptions 7, over 1 problem", "cpu.reserve_max: preemptions 0, over 1 problem"});
}

TEST_CASE("summary: without rows or headline metrics there is nothing to say", "[results]") {
  CHECK(summary_lines(results(Json::object(), Json::array())).empty());
  CHECK(summary_lines(results(Json::object(), {row("cpu.paged", {{"steps", 9}})})).empty());
}
