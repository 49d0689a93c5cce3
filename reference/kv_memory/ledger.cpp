#include "reference/kv_memory/ledger.hpp"

#include <stdexcept>
#include <string>

namespace inferometer {
namespace {

constexpr int kLimbBits = 21;
constexpr std::int64_t kLimbMask = (std::int64_t{1} << kLimbBits) - 1;

constexpr std::array<const char*, kKvCounts> kNames = {
    "pool_slots",     "steps",     "token",         "reserved",     "internal",      "external",
    "cached",         "free",      "shared_saved",  "loaded_steps", "loaded_token",  "loaded_generated",
    "requests",       "refused",   "preemptions",   "peak_running", "prompt_tokens", "output_tokens",
    "refused_output", "generated", "reused_prompt", "recomputed"};

}  // namespace

std::int64_t KvLedger::slot_steps() const {
  const KvLedger& self = *this;
  return self[KvCount::token] + self[KvCount::reserved] + self[KvCount::internal] + self[KvCount::external] +
         self[KvCount::cached] + self[KvCount::free];
}

void KvLedger::write(std::span<std::int32_t> limbs) const {
  for (std::size_t i = 0; i < kKvCounts; ++i) {
    if (counts_[i] < 0)
      throw std::out_of_range(std::string("the ledger's ") + kNames[i] + " is negative: " + std::to_string(counts_[i]));
    for (std::size_t limb = 0; limb < kKvLimbs; ++limb)
      limbs[i * kKvLimbs + limb] = static_cast<std::int32_t>((counts_[i] >> (kLimbBits * limb)) & kLimbMask);
  }
}

KvLedger KvLedger::read(std::span<const std::int32_t> limbs) {
  KvLedger ledger;
  for (std::size_t i = 0; i < kKvCounts; ++i)
    for (std::size_t limb = 0; limb < kKvLimbs; ++limb)
      ledger.counts_[i] |= std::int64_t{limbs[i * kKvLimbs + limb]} << (kLimbBits * limb);
  return ledger;
}

const char* name_of(KvCount count) { return kNames[static_cast<std::size_t>(count)]; }

}  // namespace inferometer
