// Small answers about records: names of statuses, which of them carry numbers, which cache a time is of.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "harness/results/record.hpp"

namespace inferometer {

inline constexpr std::array<std::pair<Status, std::string_view>, 8> kStatusNames{{
    {Status::ok, "ok"},
    {Status::incorrect, "incorrect"},
    {Status::unsupported, "unsupported"},
    {Status::out_of_memory, "out_of_memory"},
    {Status::crashed, "crashed"},
    {Status::timed_out, "timed_out"},
    {Status::suspect, "suspect"},
    {Status::error, "error"},
}};

constexpr std::string_view status_name(Status status) {
  for (const auto& [value, name] : kStatusNames)
    if (value == status) return name;
  return "?";
}

constexpr std::optional<Status> parse_status(std::string_view text) {
  for (const auto& [value, name] : kStatusNames)
    if (name == text) return value;
  return std::nullopt;
}

// The outputs were right twice: timing and rates may be shown.
constexpr bool has_timing(Status status) { return status == Status::ok || status == Status::suspect; }

// Of the figure that rates are made of.
inline CacheMode headline_cache(const Timing& timing) {
  return timing.headline == "amortized" && timing.amortized ? timing.amortized->cache : timing.isolated.cache;
}

// Nothing went wrong: exit code 0.
constexpr bool is_success(Status status) { return status == Status::ok || status == Status::unsupported; }

}  // namespace inferometer
