#include "harness/sweep/shard.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "harness/operator/nearest_word.hpp"
#include "harness/operator/registry.hpp"

namespace inferometer {
namespace {

constexpr double kCpuFlopsPerSecond = 2e10;
constexpr double kGpuFlopsPerSecond = 2e14;
constexpr double kCpuBytesPerSecond = 5e9;
constexpr double kGpuBytesPerSecond = 2e12;
constexpr double kLaunches = 10;  // of a long row: checks, warm-up and the fewest samples that fit its seconds

int whole_number(std::string_view text, const std::string& given) {
  int value = 0;
  const char* const end = text.data() + text.size();
  if (const auto [stop, error] = std::from_chars(text.data(), end, value); error != std::errc() || stop != end)
    throw ConfigError("--shard must be I/N, as in 2/8, got " + in_quotes(given));
  return value;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) throw ConfigError("--shard must be I/N, as in 2/8, got " + in_quotes(text));
  const std::string_view view = text;
  const Shard shard{.index = whole_number(view.substr(0, slash), text),
                    .count = whole_number(view.substr(slash + 1), text)};
  if (shard.count < 1 || shard.index < 1 || shard.index > shard.count)
    throw ConfigError("--shard must be I/N with 1 <= I <= N, got " + in_quotes(text));
  return shard;
}

std::vector<RowGroup> row_groups(const Sweep& sweep, const std::function<bool(const SweepRow&)>& wanted) {
  std::vector<RowGroup> groups;
  std::unordered_map<std::string, std::size_t> group_of;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    if (!wanted(row)) continue;
    const std::string key = row.baseline_id.empty() ? to_string(row.problem) : row.baseline_id;
    const auto [found, is_new] = group_of.try_emplace(key, groups.size());
    if (is_new) groups.emplace_back();
    groups[found->second].rows.push_back(i);
    groups[found->second].seconds += estimated_seconds(sweep, row);
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const RowGroup& a, const RowGroup& b) { return a.seconds > b.seconds; });
  return groups;
}

double estimated_seconds(const Sweep& sweep, const SweepRow& row) {
  const Operator* op = find_operator(row.operator_name);
  const Variant* variant = find_variant(row.operator_name, row.variant);
  if (op == nullptr || variant == nullptr || !variant->not_built.empty()) return 0;
  const bool gpu = variant->on_gpu();
  const Work work = op->work(op->parse(row.problem).get());
  const double launch = std::max(work.flops / (gpu ? kGpuFlopsPerSecond : kCpuFlopsPerSecond),
                                 work.bytes / (gpu ? kGpuBytesPerSecond : kCpuBytesPerSecond));
  return std::min(sweep.measure.max_seconds + 2 * sweep.measure.rest_seconds + kLaunches * launch,
                  sweep.limits.row_seconds);
}

void keep_shard(Sweep& sweep, const Shard& shard) {
  const std::vector<RowGroup> groups = row_groups(sweep);
  const auto count = static_cast<std::size_t>(shard.count);
  if (count > groups.size()) {
    throw ConfigError("--shard: " + sweep.path + " has " + std::to_string(groups.size()) +
                      " groups of rows with a baseline or a problem in common, too few for " +
                      std::to_string(shard.count) + " shards");
  }
  struct Load {
    double seconds = 0;
    std::size_t rows = 0;  // decides between equals, so that rows that cost nothing are spread as well
    auto operator<=>(const Load&) const = default;
  };
  std::vector<Load> loads(count);
  std::vector<std::size_t> kept;
  for (const RowGroup& group : groups) {
    const auto least = std::min_element(loads.begin(), loads.end());
    least->seconds += group.seconds;
    least->rows += group.rows.size();
    if (least - loads.begin() + 1 == shard.index) kept.insert(kept.end(), group.rows.begin(), group.rows.end());
  }
  std::sort(kept.begin(), kept.end());
  SweepShard& part = sweep.shard.emplace();
  part.index = shard.index;
  part.count = shard.count;
  for (const SweepRow& row : sweep.rows) part.sweep_rows.push_back(row.id);
  std::vector<SweepRow> rows;
  rows.reserve(kept.size());
  for (const std::size_t row : kept) rows.push_back(std::move(sweep.rows[row]));
  sweep.rows = std::move(rows);
}

}  // namespace inferometer
