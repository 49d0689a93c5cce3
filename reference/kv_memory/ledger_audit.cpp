#include "reference/kv_memory/ledger_audit.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "reference/kv_memory/recount.hpp"

namespace inferometer {
namespace {

std::string unequal(const std::string& what, std::int64_t value, const std::string& other, std::int64_t expected) {
  if (value == expected) return {};
  return what + " is " + std::to_string(value) + ", " + other + " " + std::to_string(expected);
}

}  // namespace

std::string audit_ledger(const KvMemoryProblem& p, std::string_view variant, const KvLedger& ledger) {
  std::int64_t slot_steps = 0;
  if (__builtin_mul_overflow(p.pool_slots(), ledger[KvCount::steps], &slot_steps))
    return "pool_slots x steps passes 2^63";
  const std::string sums[] = {
      unequal("the sum of all slot states", ledger.slot_steps(), "pool_slots x steps", slot_steps),
      unequal("generated", ledger[KvCount::generated], "the outputs of all requests that were not refused",
              ledger[KvCount::output_tokens] - ledger[KvCount::refused_output])};
  for (const std::string& sentence : sums)
    if (!sentence.empty()) return sentence;
  const std::optional<KvLedger> counted = recount(p, variant);
  if (!counted) return {};
  for (std::size_t i = 0; i < kKvCounts; ++i) {
    const auto count = static_cast<KvCount>(i);
    if (std::string sentence = unequal(name_of(count), ledger[count], "counted one by one", (*counted)[count]);
        !sentence.empty())
      return sentence;
  }
  return {};
}

std::vector<Metric> ledger_metrics(const KvMemoryProblem& p, const KvLedger& ledger) {
  const auto value = [&](KvCount count) { return static_cast<double>(ledger[count]); };
  // Of nothing there is no share and no mean: 0 would read as a bad one.
  const auto ratio = [](double part, double whole) {
    return whole > 0 ? part / whole : std::numeric_limits<double>::quiet_NaN();
  };
  const double slot_steps = value(KvCount::pool_slots) * value(KvCount::steps);
  const double allocated = value(KvCount::token) + value(KvCount::reserved) + value(KvCount::internal);
  return {{"kv_token_share_of_pool_ratio", ratio(value(KvCount::token), slot_steps)},
          {"kv_token_share_of_pool_under_load_ratio",
           ratio(value(KvCount::loaded_token), value(KvCount::pool_slots) * value(KvCount::loaded_steps))},
          {"kv_token_share_of_allocated_ratio", ratio(value(KvCount::token), allocated)},
          {"reserved_share_ratio", ratio(value(KvCount::reserved), slot_steps)},
          {"internal_share_ratio", ratio(value(KvCount::internal), slot_steps)},
          {"external_share_ratio", ratio(value(KvCount::external), slot_steps)},
          {"cached_share_ratio", ratio(value(KvCount::cached), slot_steps)},
          {"free_share_ratio", ratio(value(KvCount::free), slot_steps)},
          {"shared_saved_ratio", ratio(value(KvCount::shared_saved), slot_steps)},
          {"reused_prompt_ratio", ratio(value(KvCount::reused_prompt), value(KvCount::prompt_tokens))},
          {"admitted_mean", ratio(value(KvCount::generated), value(KvCount::steps))},
          {"admitted_under_load_mean", ratio(value(KvCount::loaded_generated), value(KvCount::loaded_steps))},
          {"admitted_peak", value(KvCount::peak_running)},
          {"requests_seen", value(KvCount::requests)},
          {"refusals", value(KvCount::refused)},
          {"preemptions", value(KvCount::preemptions)},
          {"recomputed_tokens", value(KvCount::recomputed)},
          {"steps", value(KvCount::steps)},
          {"loaded_steps", value(KvCount::loaded_steps)},
          {"pool_slots", value(KvCount::pool_slots)},
          {"token_bytes", static_cast<double>(p.token_bytes())}};
}

}  // namespace inferometer
