// The rows of a sweep dealt out: to the tasks of a cluster's job array, or to the GPUs of a host.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace inferometer {

// Part `index` of `count`, from 1.
struct Shard {
  int index = 1;
  int count = 1;
};

// "2/8". Throws ConfigError.
Shard parse_shard(const std::string& text);

// Rows that stay together, as indices into Sweep::rows, ascending: those of one baseline, so that a speed-up is of one
// device; without baselines those of one problem, whose expected values are computed once.
struct RowGroup {
  std::vector<std::size_t> rows;
  double seconds = 0;  // estimated
};

// The longest first, equals in the order of their first rows: whoever is free takes the next one, and short ones fill
// what is left at the end. Of the rows that are `wanted` alone; groups without any are left out.
std::vector<RowGroup> row_groups(
    const Sweep& sweep, const std::function<bool(const SweepRow&)>& wanted = [](const SweepRow&) { return true; });

// Seconds that a row may take: its time to measure, and its launches at a modest rate. Good for balance, not for
// promises.
double estimated_seconds(const Sweep& sweep, const SweepRow& row);

// Drops the rows of other shards. The shards of a sweep are disjoint and complete, and the same rows fall to the same
// shard wherever and whenever this is asked. Groups go whole, the longest first, to whoever has least so far. Throws
// ConfigError where a shard would have no row.
void keep_shard(Sweep& sweep, const Shard& shard);

}  // namespace inferometer
