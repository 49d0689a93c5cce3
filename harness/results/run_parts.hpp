// What a results file says of a run on several devices, or of a part of a sweep.
#pragma once

#include <string>
#include <vector>

#include "harness/results/environment.hpp"
#include "harness/results/json.hpp"
#include "harness/results/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

// Where a record's row ran: "cpu", or the uuid of the GPU of `report`; empty without a GPU.
std::string device_name(const Record& record, const DeviceReport& report);

// "GPU-1a2b... NVIDIA H200", several with commas; the processor's name without a GPU.
std::string device_names(const std::vector<DeviceReport>& reports);

// Names to lock, each once: uuids of GPUs, "cpu" where none is opened.
std::vector<std::string> lockable_devices(const std::vector<DeviceReport>& reports);

// Adds "shard" to the results of a part of a sweep, and "gpus" to the environment of a run on several.
void note_parts(Json& results, const Sweep& sweep, const std::vector<DeviceReport>& reports);

}  // namespace inferometer
