#include "harness/results/examination.hpp"

#include <algorithm>

namespace inferometer {
namespace {

constexpr double kCeilingError = 1.1;  // a read this far above what memory delivers came from the cache
constexpr double kWarmGain = 1.1;      // a warm read less than this faster than a cold one tells nothing

// Rate of a read as a multiple of what memory delivers. What a launch costs without any work is no part of the read.
double over_memory(const CacheCheck& check, double ns, double overhead_ns, double memory_bytes_per_s) {
  const double seconds = std::max(ns - overhead_ns, 1.0) * 1e-9;
  return static_cast<double>(check.read_bytes) / seconds / memory_bytes_per_s;
}

// After clearing a read took as long as from the cache, though others show that the cache is faster than memory. Where
// a read from the cache does not take long enough to be told from its launch, the rate of memory alone tells too
// little.
bool is_as_warm(const CacheCheck& check) {
  constexpr double kSame = 1.05;
  constexpr double kFaster = 1.15;
  return check.cold_ns < kSame * check.warm_ns && check.rotated_ns && check.repeated_ns &&
         *check.rotated_ns > kFaster * *check.repeated_ns;
}

}  // namespace

CacheVerdicts judge_cache(const Examination& measured) {
  CacheVerdicts verdicts;
  // Copying is no faster than reading: where it seems so, reading was disturbed.
  const double memory =
      std::max(measured.ceilings.read_bytes_per_s.value_or(0), measured.ceilings.copy_bytes_per_s.value_or(0));
  if (!measured.cache || memory <= 0) return verdicts;
  const CacheCheck& check = *measured.cache;
  const CacheVerdict too_fast =
      measured.noise.repeat_ratio <= kLoudNoise ? CacheVerdict::fails : CacheVerdict::disturbed;
  verdicts.cold_rate = over_memory(check, check.cold_ns, measured.noise.empty_launch_ns, memory);
  verdicts.as_warm = verdicts.cold_rate <= kCeilingError && is_as_warm(check);
  if (verdicts.cold_rate > kCeilingError || verdicts.as_warm) {
    verdicts.clear = too_fast;
  } else {
    verdicts.clear = check.cold_ns < kWarmGain * check.warm_ns ? CacheVerdict::unclear : CacheVerdict::works;
  }
  if (!check.rotated_ns) return verdicts;
  verdicts.rotated_rate = over_memory(check, *check.rotated_ns, 0, memory);
  if (verdicts.rotated_rate > kCeilingError) {
    verdicts.rotation = too_fast;
  } else {
    const bool tells = !check.repeated_ns || *check.rotated_ns >= kWarmGain * *check.repeated_ns;
    verdicts.rotation = tells ? CacheVerdict::works : CacheVerdict::unclear;
  }
  return verdicts;
}

std::string_view verdict_word(CacheVerdict verdict) {
  switch (verdict) {
    case CacheVerdict::works: return "works";
    case CacheVerdict::fails: return "fails";
    case CacheVerdict::disturbed: return "disturbed";
    case CacheVerdict::unclear: return "unclear";
    case CacheVerdict::unchecked: return "unchecked";
  }
  return "?";
}

std::vector<std::string> cold_flags(const CacheVerdicts& verdicts, bool amortized) {
  std::vector<std::string> flags;
  if (verdicts.clear == CacheVerdict::fails) flags.emplace_back("cache_not_cleared");
  if (amortized && verdicts.rotation == CacheVerdict::fails) flags.emplace_back("rotation_in_cache");
  return flags;
}

Json cache_check_json(const CacheCheck& check) {
  return {{"read_bytes", check.read_bytes},
          {"cold_ns", check.cold_ns},
          {"warm_ns", check.warm_ns},
          {"input_sets", check.input_sets},
          {"rotated_ns", or_null(check.rotated_ns)},
          {"repeated_ns", or_null(check.repeated_ns)},
          {"after_reading_ns", or_null(check.after_reading_ns)},
          {"after_memset_ns", or_null(check.after_memset_ns)}};
}

CacheCheck cache_check_from_json(const Json& json) {
  const auto time = [&](const char* name) { return optional_real_from(json.at(name)); };
  return {.read_bytes = whole_from<std::size_t>(json.at("read_bytes")),
          .cold_ns = real_from(json.at("cold_ns")),
          .warm_ns = real_from(json.at("warm_ns")),
          .input_sets = whole_from<int>(json.at("input_sets")),
          .rotated_ns = time("rotated_ns"),
          .repeated_ns = time("repeated_ns"),
          .after_reading_ns = time("after_reading_ns"),
          .after_memset_ns = time("after_memset_ns")};
}

Json examination_json(const Examination& measured) {
  const Ceilings& ceilings = measured.ceilings;
  const CacheVerdicts verdicts = judge_cache(measured);
  return {{"noise",
           {{"repeat_ratio", measured.noise.repeat_ratio},
            {"event_resolution_ns", measured.noise.event_resolution_ns},
            {"empty_launch_ns", measured.noise.empty_launch_ns}}},
          {"ceilings",
           {{"read_bytes_per_s", or_null(ceilings.read_bytes_per_s)},
            {"copy_bytes_per_s", or_null(ceilings.copy_bytes_per_s)},
            {"f16_flops_per_s", or_null(ceilings.f16_flops_per_s)},
            {"f32_flops_per_s", or_null(ceilings.f32_flops_per_s)},
            {"int8_ops_per_s", or_null(ceilings.int8_ops_per_s)}}},
          {"cache", measured.cache ? cache_check_json(*measured.cache) : Json(nullptr)},
          {"cache_absent", or_null(measured.cache_absent)},
          {"cache_clear", verdict_word(verdicts.clear)},
          {"cache_rotation", verdict_word(verdicts.rotation)}};
}

}  // namespace inferometer
