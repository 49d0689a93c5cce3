// Rows measured in turn with what they stand against: A B B A. What drifts evenly while they run - heat, power, a
// neighbour's load - adds the same to both.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "harness/results/results_file.hpp"
#include "harness/run/row_executor.hpp"

namespace inferometer {

class AbbaExecutor : public RowExecutor {
 public:
  // `counterparts`: what to measure beside a row, by the row's id; other rows are run once. `counterpart_records` gets
  // what those took, by the same id; it outlives the executor.
  AbbaExecutor(std::unique_ptr<RowExecutor> inner, std::map<std::string, SweepRow> counterparts,
               RecordsById& counterpart_records);

  const DeviceReport& start() override { return inner_->start(); }
  Record run(const SweepRow& row) override;

 private:
  std::unique_ptr<RowExecutor> inner_;
  std::map<std::string, SweepRow> counterparts_;
  RecordsById& counterpart_records_;
};

}  // namespace inferometer
