// The JSON of a safetensors header, read event by event: nothing is built but the tensors themselves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "reference/checkpoint/safetensors_header.hpp"

namespace inferometer {

// The entries as they stand in `json`, and whether each is complete and of a known type; not yet whether their places
// fit. `path` and `json_start` (where in the file the JSON begins) are for errors.
void parse_header_json(std::string_view json, const std::string& path, std::uint64_t json_start,
                       std::vector<TensorEntry>& tensors, std::map<std::string, std::string>& metadata);

}  // namespace inferometer
