#include "harness/claims/claims_report.hpp"
#include "harness/claims/part_text.hpp"
#include "harness/results/build_info.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

constexpr const char* kSchema = "inferometer.claims_report/1";

// As claims.json has it.
template <class T, class Table>
std::string name_of(T value, const Table& table) {
  for (const auto& [item, name] : table)
    if (item == value) return std::string(name);
  return "?";
}

std::string quantity_name(const Quantity& quantity) {
  if (quantity.kind == Quantity::Kind::time) return "time";
  return (quantity.kind == Quantity::Kind::metric ? "metrics." : "memory.") + quantity.name;
}

Json evidence_name(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::none: return nullptr;
    case EvidenceKind::measured: return "measured";
    case EvidenceKind::simulated: return "simulated";
    case EvidenceKind::both: return "measured and simulated";
  }
  return nullptr;
}

Json point_json(const ClaimPoint& point, const Evidence& evidence) {
  return {{"variant", point.variant},
          {"problem", fields_json(point.problem)},
          {"device", point.device},
          {"value", point.value},
          {"ci", point.interval ? Json::array({point.interval->low, point.interval->high}) : Json(nullptr)},
          {"simulated", point.simulated},
          {"two_devices", point.two_devices},
          {"inside", point.inside},
          {"file", evidence.files()[point.file].path}};
}

Json part_json(const JudgedPart& part, const Evidence& evidence) {
  Json points = Json::array();
  for (const ClaimPoint& point : part.measurement.points) points.push_back(point_json(point, evidence));
  Json left_out = Json::object();
  for (const auto& [why, count] : part.measurement.left_out) left_out[why] = count;
  return {{"name", part.part.name},
          {"operator", part.part.op->name},
          {"experiment", part.part.experiment},
          {"statistic", name_of(part.part.statistic, kStatisticNames)},
          {"quantity", quantity_name(part.part.quantity)},
          {"role", name_of(part.part.role, kRoleNames)},
          {"claimed", or_null(part.part.claimed)},
          {"accepted", {{"min", or_null(part.part.accepted.min)}, {"max", or_null(part.part.accepted.max)}}},
          {"verdict", part.part.role == PartRole::beside ? Json(nullptr) : Json(verdict_name(part.verdict))},
          {"measured", or_null(shown_measured(part))},
          {"where", or_null(where_text(part))},
          {"left_out", std::move(left_out)},
          {"points", std::move(points)}};
}

}  // namespace

Json claims_json(const std::vector<JudgedClaim>& claims, const Evidence& evidence) {
  Json files = Json::array();
  for (const EvidenceFile& file : evidence.files()) {
    files.push_back({{"path", file.path},
                     {"git_commit", file.commit},
                     {"started_at", file.started_at},
                     {"cpu_model", file.cpu},
                     {"gpu", or_null(file.gpu)}});
  }
  Json list = Json::array();
  for (const JudgedClaim& judged : claims) {
    Json parts = Json::array();
    for (const JudgedPart& part : judged.parts) parts.push_back(part_json(part, evidence));
    Json used = Json::array();
    for (const std::size_t file : judged.files) used.push_back(evidence.files()[file].path);
    list.push_back({{"id", judged.claim.id},
                    {"claim", judged.claim.text},
                    {"source", judged.claim.source},
                    {"conditions", judged.claim.conditions},
                    {"verdict", verdict_name(judged.verdict)},
                    {"evidence", evidence_name(judged.evidence)},
                    {"reason", judged.reason},
                    {"files", std::move(used)},
                    {"parts", std::move(parts)}});
  }
  Json report{{"schema", kSchema},
              {"program", {{"version", build_info().version}, {"git_commit", build_info().git_commit}}},
              {"files", std::move(files)},
              {"claims", std::move(list)}};
  null_non_finite(report);
  return report;
}

}  // namespace inferometer
