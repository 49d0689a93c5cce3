// The harness measured on one device, and what that says of the rows that are called cold there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/cache_check.hpp"
#include "harness/measure/device.hpp"
#include "harness/results/json.hpp"

namespace inferometer {

struct Examination {
  Noise noise;
  Ceilings ceilings;
  std::optional<CacheCheck> cache;
  std::string cache_absent;  // why it was not checked
};

inline constexpr double kLoudNoise = 0.02;  // repeats that differ by more hide most optimisations

enum class CacheVerdict : std::uint8_t {
  works,      // no faster than memory delivers
  fails,      // faster, or as fast as from a cache that is known to be faster: data came from the cache
  disturbed,  // so, on a device too noisy for such a charge
  unclear,    // a read from the cache takes as long: it tells nothing
  unchecked,
};

// Rates are multiples of what memory delivers.
struct CacheVerdicts {
  CacheVerdict clear = CacheVerdict::unchecked;     // of reads right after clearing
  CacheVerdict rotation = CacheVerdict::unchecked;  // of reads that rotate over buffers
  bool as_warm = false;  // the read after clearing was as fast as from the cache, though not faster than memory
  double cold_rate = 0;
  double rotated_rate = 0;
};

CacheVerdicts judge_cache(const Examination& measured);

// "works", ..., as results files have it.
std::string_view verdict_word(CacheVerdict verdict);

// For the flags of a cold row: "cache_not_cleared", and "rotation_in_cache" if its `amortized` time says cold as well.
std::vector<std::string> cold_flags(const CacheVerdicts& verdicts, bool amortized);

// Noise, ceilings, the check of the cache and its verdicts.
Json examination_json(const Examination& measured);

Json cache_check_json(const CacheCheck& check);
CacheCheck cache_check_from_json(const Json& json);

}  // namespace inferometer
