// Decoders on the GPU for tests: sequences as a scheduler would run them, with blocks in no order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/generate.hpp"
#include "kernels/decoder/decoder.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {

using Tokens = std::vector<TokenId>;

inline Tokens random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  Tokens tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(mix_bits(stream_key(seed, static_cast<std::uint64_t>(i))) %
                                          static_cast<std::uint64_t>(vocabulary)));
  return tokens;
}

// A decoder with guarded memory, and sequences that own blocks of its pool. Sequence s holds every `sequences`-th block
// from the end of the pool on, so that neither a sequence's blocks nor their order are neighbours.
class DecoderRun {
 public:
  DecoderRun(const DecoderWeights& weights, const DecoderConfig& config, std::int64_t sequences)
      : device_(gpu()),
        memory_(*device_),
        decoder_(weights, config, device_->launch().stream, memory_),
        tables_(static_cast<std::size_t>(sequences)) {
    const std::int64_t blocks = (config.max_length + config.block_size - 1) / config.block_size;
    REQUIRE(sequences * blocks <= config.num_blocks);
    for (std::int64_t s = 0; s < sequences; ++s)
      for (std::int64_t i = 0; i < blocks; ++i)
        tables_[static_cast<std::size_t>(s)].push_back(
            static_cast<std::int32_t>(config.num_blocks - 1 - i * sequences - s));
  }
  ~DecoderRun() { CHECK(memory_.violations() == std::vector<std::string>()); }
  DecoderRun(const DecoderRun&) = delete;
  DecoderRun& operator=(const DecoderRun&) = delete;

  CudaDecoder& decoder() { return decoder_; }
  Device& device() { return *device_; }
  const std::vector<std::int32_t>& table(std::size_t sequence) const { return tables_[sequence]; }

  // The row that computes `count` tokens of sequence s behind the first `position` of `all`.
  StepRow row(std::size_t s, const Tokens& all, std::int64_t position, std::int64_t count) const {
    return {.sequence = static_cast<SequenceId>(s),
            .tokens = std::span(all).subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(count)),
            .position = position,
            .table = tables_[s],
            .samples = position + count == std::ssize(all)};
  }

  Tokens step(const StepBatch& batch) {
    Tokens next(batch.rows.size(), -1);
    decoder_.step(batch, next);
    return next;
  }

  // Logits of the last token of `all`, whose first `position` tokens are in the cache.
  std::vector<float> logits_after(const Tokens& all, std::int64_t position) {
    StepBatch batch;
    batch.rows = {row(0, all, position, std::ssize(all) - position)};
    step(batch);
    return decoder_.logits();
  }

 private:
  std::unique_ptr<Device> device_;
  GuardedMemory memory_;
  CudaDecoder decoder_;
  std::vector<std::vector<std::int32_t>> tables_;
};

inline DecoderConfig small_config(std::int64_t weight_bits, std::int64_t kv_bits, std::int64_t block_size = 16) {
  constexpr std::int64_t kLength = 128;
  return {.weight_bits = weight_bits,
          .kv_bits = kv_bits,
          .block_size = block_size,
          .num_blocks = 8 * ((kLength + block_size - 1) / block_size),
          .max_rows = 8,
          .max_tokens = 256,
          .max_length = kLength};
}

}  // namespace inferometer::test
