// Records, problems and environments as JSON: the fields of a results file (docs/results.md).
#pragma once

#include <string>
#include <vector>

#include "harness/results/environment.hpp"
#include "harness/results/json.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

Json fields_json(const Fields& fields);
Fields fields_from_json(const Json& json);

// Numbers that are not finite become null, and the record's reason says which.
Json record_json(const Record& record);
Record record_from_json(const Json& json);  // throws Json::exception or std::runtime_error for what is no record
std::vector<Record> records_of(const Json& results);  // of its rows; throws likewise

Json timing_json(const Timing& timing);
Timing timing_from_json(const Json& json);

Json measure_json(const MeasureConfig& config);
MeasureConfig measure_from_json(const Json& json);

Json gpu_state_json(const GpuState& state);
Json device_report_json(const DeviceReport& report);
DeviceReport device_report_from_json(const Json& json);

// What was measured on each device of a run: an array.
Json examined_json(const DeviceReport& report);

// "environment" of a results file: the program is this one.
Json environment_json(const HostInfo& host, const DeviceReport& devices, const std::vector<std::string>& argv);

}  // namespace inferometer
