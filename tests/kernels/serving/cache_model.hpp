// A model of which everything is known: its next token is a hash of all tokens of the sequence so far. It reads these
// from a simulated cache through the block tables, so that a block that is shared, taken or reused wrongly gives other
// tokens; the oracle computes them from the tokens themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "kernels/serving/model.hpp"
#include "tests/kernels/kv_cache/simulated_cache.hpp"

namespace inferometer::test {

inline TokenId next_token(std::uint64_t fingerprint) { return static_cast<TokenId>(fingerprint >> 48); }

// What a request must say.
inline std::vector<TokenId> expected_outputs(std::span<const TokenId> prompt, std::int64_t max_new) {
  std::uint64_t value = SimulatedCache::kNothing;
  for (const TokenId token : prompt) value = SimulatedCache::fingerprint(value, token);
  std::vector<TokenId> outputs;
  for (std::int64_t i = 0; i < max_new; ++i) {
    outputs.push_back(next_token(value));
    value = SimulatedCache::fingerprint(value, outputs.back());
  }
  return outputs;
}

class CacheModel : public ServingModel {
 public:
  explicit CacheModel(const BlockPool& pool, std::int64_t step_ns = 1) : cache_(pool), step_ns_(step_ns) {}

  StepTime step(const StepBatch& batch, std::span<TokenId> next) override {
    cache_.make_copies(batch.copies, random_);
    // The last row first: rows of a step may run in any order.
    for (std::size_t i = batch.rows.size(); i-- > 0;) {
      const StepRow& row = batch.rows[i];
      auto at = static_cast<std::size_t>(row.position);
      std::uint64_t value = at == 0 ? SimulatedCache::kNothing : cache_.slot(row.table, at - 1);
      for (const TokenId token : row.tokens)
        cache_.slot(row.table, at++) = value = SimulatedCache::fingerprint(value, token);
      if (row.samples) next[i] = next_token(value);
    }
    return {.ns = step_ns_, .busy_ns = step_ns_};
  }

 private:
  SimulatedCache cache_;
  std::mt19937_64 random_;
  std::int64_t step_ns_;
};

}  // namespace inferometer::test
