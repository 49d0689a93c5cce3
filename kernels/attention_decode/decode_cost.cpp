#include "kernels/attention_decode/decode_cost.hpp"

#include <algorithm>

#include "kernels/attention_decode/partition.hpp"

namespace inferometer::decode {
namespace {

// The time in which an SM finishes `r` blocks that share it, in units of a block's keys at the SM's share of the
// bandwidth, when nothing else limits the blocks but themselves: lone + more * r. A 16-bit block alone can take twice
// its SM's share; codes take arithmetic that only further warps hide. Measured on an H200, 8 x 32k in 2, 4, 6 and 8
// parts and 1 x 32k in 8 and 16 (results/notes/decode.md).
struct Latency {
  double lone;
  double more;
};

Latency latency_of(KvFormat format, bool wide) {
  switch (format) {
    case KvFormat::half: return {.lone = 0.0, .more = 0.5};
    case KvFormat::int8:
    case KvFormat::e4m3: return {.lone = 0.0, .more = wide ? 0.7 : 0.75};
    case KvFormat::int4: return wide ? Latency{.lone = 0.0, .more = 1.24} : Latency{.lone = 0.3, .more = 1.05};
  }
  return {};
}

// Measured on an H200 at head_dim 128, a 16-bit key of one head being 15 ns of an SM's share: the start and end of a
// block, 2 us; merging by way of a cluster's shared memory, 1.2 us, or of global memory, 2.4 us; each part to merge, 60
// ns.
constexpr double kBlockKeys = 128;
constexpr double kClusterKeys = 80;
constexpr double kGlobalKeys = 160;
constexpr double kPartKeysEach = 4;

double keys_per_half_key(KvFormat format) {
  switch (format) {
    case KvFormat::half: return 1;
    case KvFormat::int8:
    case KvFormat::e4m3: return 2;
    case KvFormat::int4: return 4;
  }
  return 1;
}

// Rounds of a block's keys until all are read: whole waves of resident blocks, then the rest.
double rounds(std::int64_t blocks, Latency latency, int blocks_per_sm, int sm_count) {
  const std::int64_t wave = std::int64_t{blocks_per_sm} * sm_count;
  const auto wave_rounds = std::max(static_cast<double>(blocks_per_sm), latency.lone + latency.more * blocks_per_sm);
  const std::int64_t rest = blocks % wave;
  const std::int64_t whole_waves = blocks / wave;
  double sum = static_cast<double>(whole_waves) * wave_rounds;
  if (rest > 0) {
    const std::int64_t busiest = (rest + sm_count - 1) / sm_count;
    sum += std::max(static_cast<double>(rest) / sm_count, latency.lone + latency.more * static_cast<double>(busiest));
  }
  return sum;
}

}  // namespace

double cost_of(const Cut& cut, KvFormat format, int blocks_per_sm, int sm_count) {
  // Keys that the warps of a block take in one turn; a part that fills no whole turn leaves warps idle.
  const std::int64_t warps = cut.wide ? 8 : 4;
  const std::int64_t turn = warps * (format == KvFormat::half ? kPartKeys / 2 : kPartKeys);
  const std::int64_t keys = (cut.keys + turn - 1) / turn * turn;
  const std::int64_t wave = std::int64_t{blocks_per_sm} * sm_count;
  const std::int64_t waves = (cut.blocks + wave - 1) / wave;
  double fixed = kBlockKeys * static_cast<double>(waves);
  if (cut.parts > 1)
    fixed += (cut.cluster ? kClusterKeys : kGlobalKeys) + kPartKeysEach * static_cast<double>(cut.parts);
  return rounds(cut.blocks, latency_of(format, cut.wide), blocks_per_sm, sm_count) * static_cast<double>(keys) +
         fixed * keys_per_half_key(format);
}

}  // namespace inferometer::decode
