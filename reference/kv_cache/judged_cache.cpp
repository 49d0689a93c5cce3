#include "reference/kv_cache/judged_cache.hpp"

#include <cstddef>
#include <vector>

namespace inferometer {

JudgedSlot judged_slot(const Inputs& inputs, std::int64_t block_size, std::int64_t max_blocks, std::int64_t sequence,
                       std::int64_t token) {
  if (block_size == 0) return {.page = sequence, .within = token};
  const auto entry = static_cast<std::size_t>(sequence * max_blocks + token / block_size);
  return {.page = inputs.integers("block_table")[entry], .within = token % block_size};
}

Eigen::RowVectorXd read_judged_row(const Inputs& inputs, std::string_view tensor, std::int64_t begin,
                                   std::int64_t count) {
  const std::vector<float> row = inputs.read(tensor, begin, count);
  return Eigen::Map<const Eigen::RowVectorXf>(row.data(), count).cast<double>();
}

}  // namespace inferometer
