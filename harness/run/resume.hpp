// Whether the rows of a journal are rows of the run at hand.
#pragma once

#include <string>

#include "harness/run/journal.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

// Both throw OutputError; `path` is the journal's, for the message.

// A journal of another config, binary, device, driver, seed or number of threads.
void refuse_another_run(const JournalHeader& now, const JournalContent& journal, const std::string& path);

// Rows of the same config that this command leaves out: they would be neither in its results nor, once it is through,
// in the journal.
void refuse_other_rows(const Sweep& sweep, const JournalContent& journal, const std::string& path);

}  // namespace inferometer
