#include <filesystem>

#include "harness/claims/claims_report.hpp"
#include "harness/claims/part_text.hpp"
#include "harness/results/markdown_text.hpp"

namespace inferometer {
namespace {

std::string link_to(const EvidenceFile& file) {
  return "[" + markdown_cell(std::filesystem::path(file.path).stem().string()) + "](" +
         markdown_link_target(file.path) + ")";
}

// The parts that were measured, a line each, with what a reader needs to judge the verdict.
std::string measured_cell(const JudgedClaim& judged) {
  std::string cell;
  for (const JudgedPart& part : judged.parts) {
    const bool tested = part.verdict != ClaimVerdict::not_tested;
    if (!tested && part.part.role != PartRole::decides) continue;
    if (!cell.empty()) cell += "<br>";
    cell += markdown_cell(part_sentence(part));
    const bool in_part = part.verdict == ClaimVerdict::holds_in_part && part.part.role != PartRole::beside;
    if (const std::string where = where_text(part); in_part && !where.empty()) cell += "; " + markdown_cell(where);
  }
  return cell;
}

}  // namespace

std::string claims_markdown(const std::vector<JudgedClaim>& claims, const Evidence& evidence) {
  std::string text = markdown_table_line({"claim", "verdict", "accepted and measured", "from"}) +
                     markdown_table_line({"---", "---", "---", "---"});
  for (const JudgedClaim& judged : claims) {
    std::string files;
    for (const std::size_t file : judged.files) files += (files.empty() ? "" : ", ") + link_to(evidence.files()[file]);
    text += markdown_table_line({markdown_cell(judged.claim.text), "**" + markdown_cell(shown_verdict(judged)) + "**",
                                 measured_cell(judged), files});
  }
  return text;
}

std::string claims_markdown_brief(const std::vector<JudgedClaim>& claims) {
  std::string text = markdown_table_line({"claim", "verdict", "measured"}) + markdown_table_line({"---", "---", "---"});
  for (const JudgedClaim& judged : claims) {
    std::string measured;
    for (const JudgedPart& part : judged.parts) {
      if (!has_a_say(part)) continue;
      const std::string extent = shown_extent(part);
      std::string note = part.simulated() ? " (simulated)" : "";
      if (const std::string replaced = shown_replaced(part); !replaced.empty())
        note = " (simulated: " + markdown_cell(replaced) + ")";
      measured += (measured.empty() ? "" : "<br>") + markdown_cell(part.part.name) + ": " +
                  (extent.empty() ? "not tested here" : markdown_cell(extent)) + note;
    }
    text += markdown_table_line(
        {markdown_cell(judged.claim.text), "**" + markdown_cell(shown_verdict(judged)) + "**", measured});
  }
  return text;
}

}  // namespace inferometer
