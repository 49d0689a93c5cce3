#include <algorithm>
#include <filesystem>

#include "harness/claims/claims_report.hpp"
#include "harness/claims/part_text.hpp"
#include "harness/results/compare.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/shown_provenance.hpp"
#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kIndent = 3;
constexpr std::size_t kLabel = 10;  // "measured  "

std::string padded(const std::string& text, std::size_t columns) {
  const std::size_t used = columns_of(text);
  return text + std::string(used < columns ? columns - used : 1, ' ');
}

// The label once, then the text beside it, broken into lines.
std::string labelled(const std::string& label, const std::string& text, std::size_t columns) {
  const std::size_t left = kIndent + kLabel;
  std::string block;
  bool first = true;
  for (const std::string& line : wrapped(text, columns > left ? columns - left : 1)) {
    block += std::string(kIndent, ' ') + padded(first ? label : "", kLabel) + line + "\n";
    first = false;
  }
  return block;
}

std::string role_note(const JudgedPart& part) {
  return part.part.role == PartRole::beside ? "beside" : std::string(verdict_name(part.verdict));
}

std::string part_block(const JudgedPart& part, std::size_t columns) {
  std::string said = part.part.name + " [" + role_note(part) + "]: ";
  const std::string measured = shown_measured(part);
  said += measured.empty() ? "nothing measured; " + part.part.experiment + " measures it" : measured;
  if (const std::string accepted = shown_accepted(part.part); !accepted.empty()) said += "; accepted " + accepted;
  if (!part.part.claimed.empty()) said += "; claimed " + part.part.claimed;
  std::string block = labelled("measured", said, columns);
  if (const std::string where = where_text(part); !where.empty()) block += labelled("  where", where, columns);
  if (const std::string left_out = left_out_text(part); !left_out.empty())
    block += labelled("  not", "counted: " + left_out, columns);
  return block;
}

std::string source_line(const EvidenceFile& file) {
  return file.path + " (commit " + file.commit + ", " + (file.gpu.empty() ? file.cpu : file.gpu) + ", " +
         day_of(file.started_at) + ")";
}

std::string claim_block(const JudgedClaim& judged, const Evidence& evidence, std::size_t columns) {
  std::string block = judged.claim.id + ": " + shown_verdict(judged) + "\n";
  block += labelled("claim", judged.claim.text, columns);
  block += labelled("source", judged.claim.source, columns);
  block += labelled("tested", judged.claim.conditions, columns);
  for (const JudgedPart& part : judged.parts) block += part_block(part, columns);
  block += labelled("because", judged.reason, columns);
  std::string files;
  for (const std::size_t file : judged.files)
    files += (files.empty() ? "" : ", ") + source_line(evidence.files()[file]);
  return block + labelled("from", files, columns);
}

}  // namespace

std::string claims_text(const std::vector<JudgedClaim>& claims, const Evidence& evidence, std::size_t columns) {
  std::string text;
  for (const JudgedClaim& claim : claims) text += claim_block(claim, evidence, columns) + "\n";
  std::size_t id_columns = 0;
  std::size_t verdict_columns = 0;
  for (const JudgedClaim& claim : claims) {
    id_columns = std::max(id_columns, columns_of(claim.claim.id) + 2);
    verdict_columns = std::max(verdict_columns, shown_verdict(claim).size() + 2);
  }
  for (const JudgedClaim& claim : claims) {
    const std::string line =
        padded(claim.claim.id, id_columns) + padded(shown_verdict(claim), verdict_columns) + claim.reason;
    text += shortened(line, columns) + "\n";
  }
  return text;
}

std::string failures_text(const std::vector<NamedResults>& results) {
  std::string text;
  for (const NamedResults& one : results) {
    const std::vector<Record> records = records_of(one.json);
    const std::string file = std::filesystem::path(one.path).filename().string();
    std::string line;
    for (const auto& [status, name] : kStatusNames) {
      const auto count = std::count_if(records.begin(), records.end(),
                                       [wanted = status](const Record& record) { return record.status == wanted; });
      if (is_success(status) || count == 0) continue;
      const std::string of_file = (count == 1 ? " row of " : " rows of ") + file + (count == 1 ? " is" : " are");
      line +=
          (line.empty() ? "" : ", ") + std::to_string(count) + (line.empty() ? of_file : "") + " " + std::string(name);
    }
    if (!line.empty()) text += line + ": exit code 1\n";
  }
  return text;
}

std::string interruptions_text(const std::vector<NamedResults>& results) {
  std::string files;
  std::ptrdiff_t total = 0;
  for (const NamedResults& one : results) {
    const std::vector<Record> records = records_of(one.json);
    const auto count = std::count_if(records.begin(), records.end(), [](const Record& record) {
      return was_interrupted(record) && record.work && (record.work->flops > 0 || record.work->bytes > 0);
    });
    if (count == 0) continue;
    total += count;
    files += (files.empty() ? "" : ", ") + std::filesystem::path(one.path).filename().string();
  }
  if (total == 0) return {};
  return "Other programs interrupted " + std::to_string(total) + (total == 1 ? " row of " : " rows of ") + files +
         ": verdicts that rest on their times may be wrong. 'inferometer doctor' says what disturbs this machine; "
         "measure again once it is idle.\n";
}

}  // namespace inferometer
