// The parts of a sweep, each run on its own, as one results file.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "harness/results/json.hpp"

namespace inferometer {

// Parts that do not belong together. The message has a line for each reason.
class MergeError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct MergePart {
  std::string name;  // of the file, for messages and the merged file
  Json results;      // with the schema inferometer.results/1
};

// What parts may differ in after all.
struct MergeAllowed {
  bool config = false;      // config file, options that change it, or seed
  bool binary = false;      // program, or its build
  bool devices = false;     // model and driver of the GPU, or model and threads of the processor
  bool duplicates = false;  // the same row in several parts: the last one counts
};

// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's moves are noexcept, and throw nothing
struct Merged {
  Json results;
  std::vector<std::string> missing;  // ids of rows that the sweep has and no part holds; known where a part is a shard
};

// Rows in the order of the sweep, where a part is a shard and so knows it, else in that of the parts. The environment
// is that of the first part that has a GPU, or of the first; each part's own is kept under "parts", where those of a
// part that was merged itself stand in its place. The noise is that of the loudest part.
Merged merge_results(const std::vector<MergePart>& parts, const MergeAllowed& allowed);

}  // namespace inferometer
