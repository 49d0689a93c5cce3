// What `doctor` says of the events that time a GPU's launches.
#pragma once

#include "harness/results/doctor.hpp"

namespace inferometer {

Finding event_cost_finding(const Diagnosis& diagnosis);  // of a machine whose GPU was measured

std::string event_cost_line(const EventCost& cost);  // "empty kernel 4.40 us (CUPTI 13.0: 1.50 us), spin of ..."

Json event_cost_json(const EventCost& cost);

}  // namespace inferometer
