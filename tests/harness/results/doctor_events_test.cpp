#include "harness/results/doctor_events.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

EventCost sample_cost() {
  return {.tool = "CUPTI 13.0",
          .kernels = {{.told_ns = 0, .isolated_ns = 4400, .profiler_ns = 1500},
                      {.told_ns = 30e3, .isolated_ns = 33'400, .profiler_ns = 30'800}}};
}

Diagnosis with(const EventCost& cost) {
  Diagnosis diagnosis;
  diagnosis.event_cost = cost;
  return diagnosis;
}

}  // namespace

TEST_CASE("doctor: it says what two events add to a launch, and what to do", "[results][doctor][profiler]") {
  const Finding finding = event_cost_finding(with(sample_cost()));
  CHECK(finding.severity == Severity::good);
  CHECK(finding.sentence.starts_with("two events add 2.60 us to 2.90 us to a launch on this machine, by CUPTI 13.0: "));
  EventCost alike = sample_cost();
  alike.kernels[1].profiler_ns = 30'550;
  CHECK(event_cost_finding(with(alike)).sentence.starts_with("two events add 2.90 us to a launch"));
  CHECK(event_cost_line(sample_cost()) ==
        "empty kernel 4.40 us (CUPTI 13.0: 1.50 us), spin of 30.0 us 33.4 us (CUPTI 13.0: 30.8 us)");
}

TEST_CASE("doctor: without a profiler it says why the events' share is not known", "[results][doctor][profiler]") {
  Diagnosis diagnosis;
  diagnosis.event_cost_absent = "no libcupti.so.13 was found";
  const Finding finding = event_cost_finding(diagnosis);
  CHECK(finding.severity == Severity::advice);
  CHECK(finding.sentence == "what two events add to a launch is not known: no libcupti.so.13 was found");
}

TEST_CASE("doctor: the events' share in JSON", "[results][doctor][profiler]") {
  const Json json = diagnosis_json(with(sample_cost()), {}).at("gpu_events");
  CHECK(json.at("added_least_ns") == 2600);
  CHECK(json.at("added_most_ns") == 2900);
  CHECK(json.at("kernels").at(1).at("added_ns") == 2600);
  CHECK(diagnosis_json({}, {}).at("gpu_events").is_null());
}
