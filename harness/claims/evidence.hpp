// What results files say, as claims are judged by it: rows of known operators, with problems in full.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/operator.hpp"
#include "harness/results/record.hpp"
#include "harness/results/report_file.hpp"

namespace inferometer {

// Every field of the operator, in its order. Of what is no problem on this machine alone, a trace or a model whose file
// is elsewhere, too. Throws ProblemError for other problems that cannot be.
Fields problem_in_full(const Operator& op, const Fields& problem);

struct EvidenceFile {
  std::string path;
  std::string commit;  // as shown_commit has it
  std::string started_at;
  std::string cpu;
  std::string gpu;  // empty: none
};

struct EvidenceRow {
  Record record;  // its problem has every field of the operator, in its order
  std::size_t file = 0;

  bool simulated() const;
};

class Evidence {
 public:
  // Rows whose operator this program does not know are left out. Throws ConfigError naming the file that is no results
  // file, or whose problems are none of this program's.
  explicit Evidence(const std::vector<NamedResults>& results);

  const std::vector<EvidenceFile>& files() const { return files_; }
  const std::vector<EvidenceRow>& rows() const { return rows_; }

  // The row of the same file with this variant and problem (of whatever status); null without one.
  const EvidenceRow* find(std::size_t file, const std::string& operator_name, const std::string& variant,
                          const Fields& problem) const;

  // Where the row ran: the name of a processor or of a GPU.
  const std::string& device_of(const EvidenceRow& row) const;

 private:
  void add(const NamedResults& results);

  std::vector<EvidenceFile> files_;
  std::vector<EvidenceRow> rows_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> places_;  // file and row's id -> rows_
};

}  // namespace inferometer
