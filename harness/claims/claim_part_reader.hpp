// Parts of the reader of claims.json.
#pragma once

#include <string>

#include "harness/claims/claim.hpp"
#include "harness/sweep/cursor.hpp"

namespace inferometer {

// A string that is not empty.
std::string words_from(const Cursor& value);
// Of a member that may be absent: empty then.
std::string optional_words(const Cursor& object, const std::string& key);

// Conditions of the `claim` hold for the part too. Throws ConfigError by the place of what is wrong.
ClaimPart read_claim_part(const Cursor& value, const Cursor& claim);

}  // namespace inferometer
