#include "harness/run/resume.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace inferometer {

void refuse_another_run(const JournalHeader& now, const JournalContent& journal, const std::string& path) {
  if (const std::string what = difference(now, journal.header); !what.empty())
    throw OutputError("cannot resume from " + path + ": " + what + "; run without --resume to start over");
}

void refuse_other_rows(const Sweep& sweep, const JournalContent& journal, const std::string& path) {
  std::unordered_set<std::string_view> ids;
  for (const SweepRow& row : sweep.rows) ids.insert(row.id);
  const auto others = std::count_if(journal.records.begin(), journal.records.end(),
                                    [&](const Record& record) { return !ids.contains(record.id); });
  if (others != 0)
    throw OutputError("cannot resume from " + path + ": " + std::to_string(others) + " of its " +
                      std::to_string(journal.records.size()) +
                      " rows are not among the rows of this command; resume without --row, or choose another -o");
}

}  // namespace inferometer
