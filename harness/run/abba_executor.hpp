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

  void begin_open() override { inner_->begin_open(); }
  void open() override { inner_->open(); }
  const DeviceReport& measure_host() override { return inner_->measure_host(); }
  Record run(const SweepRow& row) override;
  void end() override { inner_->end(); }

 private:
  std::unique_ptr<RowExecutor> inner_;
  std::map<std::string, SweepRow> counterparts_;
  RecordsById& counterpart_records_;
};

}  // namespace inferometer
