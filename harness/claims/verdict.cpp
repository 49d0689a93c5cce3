#include "harness/claims/verdict.hpp"

#include <algorithm>

#include "harness/claims/part_text.hpp"

namespace inferometer {
namespace {

// What was measured first; then what was not, and where it would be.
std::string reason_of(const JudgedClaim& judged) {
  std::string tested;
  std::string missing;
  for (const JudgedPart& part : judged.parts) {
    if (!has_a_say(part)) continue;
    if (part.verdict == ClaimVerdict::not_tested) {
      missing += (missing.empty() ? "not tested here: " : ", ") + part.part.name + " (" + part.part.experiment + ")";
    } else {
      tested += (tested.empty() ? "" : "; ") + part_sentence(part);
    }
  }
  return tested + (tested.empty() || missing.empty() ? "" : "; ") + missing;
}

EvidenceKind evidence_of(const std::vector<JudgedPart>& parts) {
  bool measured = false;
  bool simulated = false;
  for (const JudgedPart& part : parts) {
    if (!has_a_say(part) || part.verdict == ClaimVerdict::not_tested) continue;
    (part.simulated() ? simulated : measured) = true;
  }
  if (measured && simulated) return EvidenceKind::both;
  return simulated ? EvidenceKind::simulated : measured ? EvidenceKind::measured : EvidenceKind::none;
}

}  // namespace

std::string_view verdict_name(ClaimVerdict verdict) {
  switch (verdict) {
    case ClaimVerdict::holds: return "holds";
    case ClaimVerdict::holds_in_part: return "holds in part";
    case ClaimVerdict::does_not_hold: return "does not hold";
    case ClaimVerdict::not_tested: return "not tested here";
  }
  return "?";
}

ClaimVerdict verdict_of(const std::vector<ClaimPoint>& points) {
  if (points.empty()) return ClaimVerdict::not_tested;
  const auto inside = std::count_if(points.begin(), points.end(), [](const ClaimPoint& point) { return point.inside; });
  if (inside == 0) return ClaimVerdict::does_not_hold;
  return inside == static_cast<std::ptrdiff_t>(points.size()) ? ClaimVerdict::holds : ClaimVerdict::holds_in_part;
}

ClaimVerdict combined_verdict(const std::vector<JudgedPart>& parts) {
  bool all_hold = true;
  bool none_holds = true;
  bool tested = false;
  for (const JudgedPart& part : parts) {
    if (!has_a_say(part)) continue;
    all_hold = all_hold && part.verdict == ClaimVerdict::holds;
    none_holds =
        none_holds && (part.verdict == ClaimVerdict::does_not_hold || part.verdict == ClaimVerdict::not_tested);
    tested = tested || part.verdict != ClaimVerdict::not_tested;
  }
  if (!tested) return ClaimVerdict::not_tested;
  if (all_hold) return ClaimVerdict::holds;
  return none_holds ? ClaimVerdict::does_not_hold : ClaimVerdict::holds_in_part;
}

std::string shown_verdict(const JudgedClaim& judged) {
  std::string text(verdict_name(judged.verdict));
  if (judged.evidence == EvidenceKind::simulated) text += " (simulated)";
  if (judged.evidence == EvidenceKind::both) text += " (partly simulated)";
  return text;
}

bool has_a_say(const JudgedPart& part) {
  return part.part.role == PartRole::decides ||
         (part.part.role == PartRole::if_tested && part.verdict != ClaimVerdict::not_tested);
}

JudgedClaim judge(const Claim& claim, const Evidence& evidence) {
  JudgedClaim judged{.claim = claim, .parts = {}, .verdict = {}, .evidence = {}, .reason = {}, .files = {}};
  for (const ClaimPart& part : claim.parts) {
    JudgedPart one{.part = part, .measurement = measure(part, evidence), .verdict = {}};
    one.verdict = verdict_of(one.measurement.points);
    for (const ClaimPoint& point : one.measurement.points) judged.files.insert(point.file);
    judged.parts.push_back(std::move(one));
  }
  judged.verdict = combined_verdict(judged.parts);
  judged.evidence = evidence_of(judged.parts);
  judged.reason = reason_of(judged);
  return judged;
}

}  // namespace inferometer
