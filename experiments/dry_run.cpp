#include "experiments/dry_run.hpp"

#include <iostream>
#include <string>

#include "harness/results/aligned.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

Json rows_json(const std::vector<Sweep>& sweeps) {
  Json rows = Json::array();
  for (const Sweep& sweep : sweeps) {
    for (const SweepRow& row : sweep.rows) {
      rows.push_back({{"config", sweep.path},
                      {"id", row.id},
                      {"operator", row.operator_name},
                      {"variant", row.variant},
                      {"problem", fields_json(row.problem)},
                      {"baseline", or_null(row.baseline_id)}});
    }
  }
  return rows;
}

std::string rows_text(const Sweep& sweep) {
  std::vector<std::vector<std::string>> lines{{"id", "variant", "baseline", "problem"}};
  for (const SweepRow& row : sweep.rows)
    lines.push_back({row.id, row.variant, row.baseline_id.empty() ? "-" : row.baseline_id, to_string(row.problem)});
  return sweep.path + ": " + sweep.name + ", " + sweep.operator_name + ", " + std::to_string(sweep.rows.size()) +
         (sweep.rows.size() == 1 ? " row\n" : " rows\n") + aligned(lines);
}

}  // namespace

void print_rows(const std::vector<Sweep>& sweeps, bool json) {
  if (json) {
    std::cout << rows_json(sweeps).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';  // a path is any bytes
    return;
  }
  for (const Sweep& sweep : sweeps) std::cout << rows_text(sweep);
}

}  // namespace inferometer
