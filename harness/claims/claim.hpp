// A published claim, and what would make it hold: plain data, read from experiments/claims.json (docs/claims.md).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/operator/operator.hpp"
#include "harness/sweep/config.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

// Bounds belong to the range; an absent one is no bound.
struct AcceptedRange {
  std::optional<double> min;
  std::optional<double> max;

  bool contains(double value) const { return (!min || value >= *min) && (!max || value <= *max); }
};

// A figure of one row.
struct Quantity {
  enum class Kind : std::uint8_t { time, metric, memory };
  Kind kind = Kind::time;
  std::string name;  // of the metric, or of the memory's role
};

// How the figures of rows become the points that are judged.
enum class Statistic : std::uint8_t {
  value,              // of each row
  reciprocal,         // `scale` over the value of each row
  ratio,              // of each row over its counterpart
  inverse_ratio,      // of the counterpart over the row: of times, the speed-up
  fitted_exponent,    // e of quantity ~ along^e, over rows alike but for `along`
  share_of_best,      // of the best among rows alike but for `along`, for each of those that `judged` keeps
  largest_near_best,  // the largest `along` whose quantity is within `near` of the best
  crossover,          // the largest `along` up to which inverse_ratio stays at least `bound`
};

inline constexpr std::array<std::pair<Statistic, std::string_view>, 8> kStatisticNames{{
    {Statistic::value, "value"},
    {Statistic::reciprocal, "reciprocal"},
    {Statistic::ratio, "ratio"},
    {Statistic::inverse_ratio, "inverse_ratio"},
    {Statistic::fitted_exponent, "fitted_exponent"},
    {Statistic::share_of_best, "share_of_best"},
    {Statistic::largest_near_best, "largest_near_best"},
    {Statistic::crossover, "crossover"},
}};

// The row of the same file that a row is set against: its problem with some fields replaced.
struct Counterpart {
  std::string variant;                          // for every row, where not empty
  std::map<std::string, std::string> variants;  // else by the row's variant
  Fields replaced;
};

enum class PartRole : std::uint8_t {
  decides,    // the claim holds in full only if this part was tested and holds
  if_tested,  // decides where its rows exist; its absence leaves the verdict alone
  beside,     // shown, and without a say
};

inline constexpr std::array<std::pair<PartRole, std::string_view>, 3> kRoleNames{
    {{PartRole::decides, "decides"}, {PartRole::if_tested, "if_tested"}, {PartRole::beside, "beside"}}};

// One figure of a claim: which rows, which statistic, which values are accepted.
struct ClaimPart {
  std::string name;
  std::string experiment;  // the sweep whose rows test it: "experiments/stack.json"
  const Operator* op = nullptr;
  std::vector<std::string> variants;  // names or globs
  std::vector<Condition> where;       // rows must meet all
  std::vector<Condition> judged;      // points must meet all (share_of_best)
  Statistic statistic = Statistic::value;
  Quantity quantity;
  std::string along;
  double scale = 1;
  double near = 0;
  double bound = 1;
  bool lower_is_better = false;
  std::optional<Counterpart> against;
  std::string claimed;  // as the source has it: "2 to 4x"
  AcceptedRange accepted;
  PartRole role = PartRole::decides;
};

// A sweep that `claims` runs for a claim, cut to what a small machine can do.
struct ClaimRun {
  std::string experiment;
  SweepOptions options;
  bool needs_gpu = false;
};

struct Claim {
  std::string id;
  std::string text;
  std::string source;
  std::string conditions;
  std::vector<ClaimPart> parts;
  std::vector<ClaimRun> runs;
};

}  // namespace inferometer
