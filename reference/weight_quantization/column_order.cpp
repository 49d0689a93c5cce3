#include "reference/weight_quantization/column_order.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace inferometer {
namespace {

std::vector<std::int64_t> falling(const std::vector<double>& keys) {
  std::vector<std::int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  return order;
}

std::vector<std::int64_t> order_whole_groups(std::int64_t width, const std::vector<double>& diagonal) {
  const std::int64_t k = std::ssize(diagonal);
  std::vector<double> means;
  for (std::int64_t begin = 0; begin < k; begin += width) {
    const std::int64_t size = std::min(width, k - begin);
    const auto first = diagonal.begin() + begin;
    means.push_back(std::accumulate(first, first + size, 0.0) / static_cast<double>(size));
  }
  std::vector<std::int64_t> inputs;
  for (const std::int64_t group : falling(means)) {
    const std::int64_t begin = group * width;
    const auto first = diagonal.begin() + begin;
    for (const std::int64_t i : falling({first, first + std::min(width, k - begin)})) inputs.push_back(begin + i);
  }
  return inputs;
}

}  // namespace

ColumnPlan plan_columns(ColumnOrder order, bool static_groups, std::int64_t group_width,
                        const std::vector<double>& diagonal) {
  ColumnPlan plan;
  plan.input.resize(diagonal.size());
  switch (order) {
    case ColumnOrder::given: std::iota(plan.input.begin(), plan.input.end(), 0); break;
    case ColumnOrder::whole_groups: plan.input = order_whole_groups(group_width, diagonal); break;
    case ColumnOrder::activation: plan.input = falling(diagonal); break;
  }
  plan.needs_group_index = order == ColumnOrder::activation && !static_groups && group_width < std::ssize(diagonal);
  for (std::int64_t position = 0; position < std::ssize(plan.input); ++position)
    plan.group.push_back((plan.needs_group_index ? position : plan.input[static_cast<std::size_t>(position)]) /
                         group_width);
  return plan;
}

}  // namespace inferometer
