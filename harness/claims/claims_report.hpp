// Judged claims as text for a terminal, as a Markdown table, and as JSON.
#pragma once

#include <string>
#include <vector>

#include "harness/claims/evidence.hpp"
#include "harness/claims/verdict.hpp"
#include "harness/results/json.hpp"

namespace inferometer {

// A block for each claim, with its parts, and the verdicts once more in a table at the end. `columns`: lines are broken
// there.
std::string claims_text(const std::vector<JudgedClaim>& claims, const Evidence& evidence, std::size_t columns);

// One line a claim: claim, verdict, measured, the files it came from as links.
std::string claims_markdown(const std::vector<JudgedClaim>& claims, const Evidence& evidence);

// For a front page: claim, verdict, and the extents of the parts that have a say.
std::string claims_markdown_brief(const std::vector<JudgedClaim>& claims);

// {"schema": "inferometer.claims_report/1", "program": ..., "files": [...], "claims": [...]}, every point in it.
Json claims_json(const std::vector<JudgedClaim>& claims, const Evidence& evidence);

// For files that were just run, a line for each that has rows neither ok nor unsupported: "2 rows of a.json are
// suspect, 1 crashed: exit code 1". Empty where every row is.
std::string failures_text(const std::vector<NamedResults>& results);

// For files that were just run, one line if other programs interrupted rows whose time counts, so not those of
// simulations: verdicts that rest on such times may be wrong. Empty without such a row.
std::string interruptions_text(const std::vector<NamedResults>& results);

}  // namespace inferometer
