// What supervisor and worker say to each other, one JSON object a line:
//
//   supervisor  {"type": "start", ...SessionConfig}      worker  {"type": "hello", "devices": {...}}
//   supervisor  {"type": "measure_host"}                 worker  {"type": "hello", "devices": {...}}
//   supervisor  {"type": "row", ...SweepRow}             worker  {"type": "phase", "name": "measure"}, ...
//                                                                {"type": "result", "record": {...}, ...RowOutcome}
// The worker leaves when its end of the socket closes.
#pragma once

#include "harness/results/json.hpp"
#include "harness/run/session.hpp"

namespace inferometer {

Json start_message(const SessionConfig& config);
SessionConfig start_from(const Json& message);

Json measure_host_message();
bool asks_to_measure_host(const Json& message);

Json row_message(const SweepRow& row);
SweepRow row_from(const Json& message);

Json hello_message(const DeviceReport& report);
Json phase_message(std::string_view phase);
Json result_message(const RowOutcome& outcome);
RowOutcome result_from(const Json& message);

}  // namespace inferometer
