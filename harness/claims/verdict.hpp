// Claims judged by evidence: a verdict for each part, one for each claim, and the sentence that says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/claims/claim.hpp"
#include "harness/claims/evidence.hpp"
#include "harness/claims/measurement.hpp"

namespace inferometer {

enum class ClaimVerdict : std::uint8_t { holds, holds_in_part, does_not_hold, not_tested };

// "holds", "holds in part", "does not hold", "not tested here"
std::string_view verdict_name(ClaimVerdict verdict);

// What a verdict rests on.
enum class EvidenceKind : std::uint8_t { none, measured, simulated, both };

// Over the points of a part: all inside the accepted range, some, none; not tested without any.
ClaimVerdict verdict_of(const std::vector<ClaimPoint>& points);

struct JudgedPart {
  ClaimPart part;
  Measurement measurement;
  ClaimVerdict verdict = ClaimVerdict::not_tested;

  bool simulated() const { return !measurement.points.empty() && measurement.points.front().simulated; }
};

struct JudgedClaim {
  Claim claim;
  std::vector<JudgedPart> parts;
  ClaimVerdict verdict = ClaimVerdict::not_tested;
  EvidenceKind evidence = EvidenceKind::none;  // of the parts that have a say
  std::string reason;                          // one sentence, made of the measured figures
  std::set<std::size_t> files;                 // whose points count
};

// In the claim's verdict: what decides always, what decides if tested where it was.
bool has_a_say(const JudgedPart& part);

// Holds where every deciding part was tested and holds; does not hold where none of those tested does, not even in
// part; else in part.
ClaimVerdict combined_verdict(const std::vector<JudgedPart>& parts);

// "holds", and "(simulated)" or "(partly simulated)" behind it where that is so.
std::string shown_verdict(const JudgedClaim& judged);

JudgedClaim judge(const Claim& claim, const Evidence& evidence);

}  // namespace inferometer
