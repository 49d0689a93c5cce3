#include "harness/judge/sample.hpp"

#include <algorithm>
#include <numeric>

#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kTileEdges[] = {16, 64, 128};

class Sample {
 public:
  Sample(std::int64_t rows, std::int64_t count) : rows_(rows), count_(count) {}

  bool full() const { return std::ssize(chosen_) == count_; }

  void add(std::int64_t row) {
    if (full() || row < 0 || row >= rows_) return;
    const auto place = std::lower_bound(chosen_.begin(), chosen_.end(), row);
    if (place == chosen_.end() || *place != row) chosen_.insert(place, row);
  }

  // The last row of one tile, the first two of the next: a kernel that is off by one errs in one of them.
  void add_edge(std::int64_t edge) {
    for (const std::int64_t row : {edge - 1, edge, edge + 1}) add(row);
  }

  std::vector<std::int64_t> take() { return std::move(chosen_); }

 private:
  std::int64_t rows_;
  std::int64_t count_;
  std::vector<std::int64_t> chosen_;  // ascending
};

}  // namespace

std::vector<std::int64_t> sample_rows(std::int64_t rows, std::int64_t count, std::uint64_t seed) {
  if (rows <= count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(rows));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return all;
  }
  Sample sample(rows, count);
  sample.add(0);
  sample.add(rows - 1);
  for (const std::int64_t tile : kTileEdges) {
    sample.add_edge(tile);
    sample.add_edge((rows - 1) / tile * tile);
  }
  // Ends: rows > count, and every index is drawn sooner or later.
  for (std::uint64_t draw = 0; !sample.full(); ++draw) {
    const auto row = static_cast<std::int64_t>(mix_bits(stream_key(seed, 0) + draw) % static_cast<std::uint64_t>(rows));
    const std::int64_t tile = kTileEdges[draw / 2 % std::size(kTileEdges)];
    sample.add(draw % 2 == 0 ? row : row / tile * tile - static_cast<std::int64_t>(draw / 6 % 2));
  }
  return sample.take();
}

}  // namespace inferometer
