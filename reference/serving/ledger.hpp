// What became of every slot in every step, and of every token computed: whole numbers, so that sums are exact.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace inferometer {

struct ServingLedger {
  std::int64_t slots = 0;
  std::int64_t steps = 0;

  // The states of a slot, in slot-steps. They sum to slots * steps.
  std::int64_t producing = 0;   // its row gave a token that is kept
  std::int64_t prefilling = 0;  // its row computed a part of what the next token needs
  std::int64_t discarded = 0;   // its request was aborted while the step ran
  std::int64_t stalled = 0;     // its request waits while prompts run alone
  std::int64_t ended = 0;       // its request has ended, its batch has not
  std::int64_t blocked = 0;     // empty although a request waits: for blocks, for budget, or for a batch to end
  std::int64_t idle = 0;        // empty, and no request waits

  // Tokens.
  std::int64_t computed_tokens = 0;    // of all rows
  std::int64_t recomputed_tokens = 0;  // of those, computed once before a preemption already
  std::int64_t padding_tokens = 0;     // beside those
  std::int64_t reused_tokens = 0;      // found in the cache whenever a request was admitted, not computed

  std::int64_t preemptions = 0;
  std::int64_t peak_running = 0;  // most requests that ran at once

  // Memory of the cache in tokens, summed over steps: of running requests, and what is taken or reserved for them.
  std::int64_t kv_token_steps = 0;
  std::int64_t kv_taken_steps = 0;
  std::int64_t kv_taken_peak = 0;  // most that was taken in a step

  bool operator==(const ServingLedger&) const = default;

  std::int64_t slot_steps() const { return producing + prefilling + discarded + stalled + ended + blocked + idle; }
};

struct SlotShare {
  std::string_view state;
  double share = 0;
};

// The states of a slot as shares of slots * steps, in the order of the ledger; they sum to exactly 1 in the rationals.
// Empty before the first step.
std::vector<SlotShare> slot_shares(const ServingLedger& ledger);

// Rows that produce a kept token over slots * steps; not a number before the first step.
double slot_occupancy(const ServingLedger& ledger);

// Of all token positions computed, those that are padding; not a number before the first step.
double padding_share(const ServingLedger& ledger);

}  // namespace inferometer
