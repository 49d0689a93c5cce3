// experiments/claims.json -> claims.
#pragma once

#include <string>
#include <vector>

#include "harness/claims/claim.hpp"

namespace inferometer {

// `path` begins the message of every ConfigError, and the place within follows: "claims.json: /claims/0/id: ...".
// Operators, fields, metrics, variants and words are checked as they are read.
std::vector<Claim> parse_claims(const std::string& text, const std::string& path);

std::vector<Claim> load_claims(const std::string& path);

}  // namespace inferometer
