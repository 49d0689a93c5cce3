#include "reference/serving/ledger.hpp"

#include <limits>

namespace inferometer {
namespace {

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<SlotShare> slot_shares(const ServingLedger& ledger) {
  if (ledger.steps == 0) return {};
  const auto share = [&](std::string_view state, std::int64_t count) {
    return SlotShare{.state = state, .share = ratio(count, ledger.slots * ledger.steps)};
  };
  return {share("producing", ledger.producing),
          share("prefilling", ledger.prefilling),
          share("discarded", ledger.discarded),
          share("stalled", ledger.stalled),
          share("ended", ledger.ended),
          share("blocked", ledger.blocked),
          share("idle", ledger.idle)};
}

double slot_occupancy(const ServingLedger& ledger) { return ratio(ledger.producing, ledger.slots * ledger.steps); }

double padding_share(const ServingLedger& ledger) {
  return ratio(ledger.padding_tokens, ledger.padding_tokens + ledger.computed_tokens);
}

}  // namespace inferometer
