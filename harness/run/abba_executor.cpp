#include "harness/run/abba_executor.hpp"

#include <utility>

#include "harness/results/against.hpp"

namespace inferometer {

AbbaExecutor::AbbaExecutor(std::unique_ptr<RowExecutor> inner, std::map<std::string, SweepRow> counterparts,
                           RecordsById& counterpart_records)
    : inner_(std::move(inner)), counterparts_(std::move(counterparts)), counterpart_records_(counterpart_records) {}

Record AbbaExecutor::run(const SweepRow& row) {
  const auto counterpart = counterparts_.find(row.id);
  if (counterpart == counterparts_.end()) return inner_->run(row);
  const Record first_base = inner_->run(counterpart->second);
  const Record first = inner_->run(row);
  const Record second = inner_->run(row);
  const Record second_base = inner_->run(counterpart->second);
  counterpart_records_.insert_or_assign(row.id, combined(first_base, second_base));
  return combined(first, second);
}

}  // namespace inferometer
