// Requests made from published statistics of request lengths, for machines without the traces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "reference/kv_memory/request.hpp"

namespace inferometer {

bool is_synthetic(std::string_view trace);

// Endless. Lengths are such that a request stores at most `max_length` tokens; it arrives with the one before it.
std::unique_ptr<RequestSource> make_synthetic(std::string_view name, std::int64_t max_length, std::uint64_t seed);

}  // namespace inferometer
