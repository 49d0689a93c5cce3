// From which day and which program's source a results file is, as people read it.
#pragma once

#include <string>

#include "harness/results/json.hpp"

namespace inferometer {

// "2026-11-30" of "2026-11-30T01:27:23Z".
std::string day_of(const std::string& time);

// Of environment.program: "557b122bec", and " with changes" behind it where files differed from the commit. Throws what
// Json throws where it is none.
std::string shown_commit(const Json& program);

}  // namespace inferometer
