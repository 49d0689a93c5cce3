// What a step may write.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/decoder/kv_pool.hpp"
#include "tests/kernels/decoder/decoder_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr std::uint8_t kCanary = 0x5a;

std::vector<std::byte> read_pool(DecoderRun& run) {
  const auto pool = run.decoder().device_pool();
  std::vector<std::byte> bytes(pool.size());
  run.device().copy_to_host(bytes.data(), pool.data(), bytes.size());
  return bytes;
}

// Blocks of K of layer 0 in which a byte differs from the canary.
std::vector<std::int64_t> touched_blocks(const std::vector<std::byte>& pool, const decoder::KvPoolShape& shape,
                                         std::int64_t at) {
  std::vector<std::int64_t> touched;
  for (std::int64_t block = 0; block < shape.blocks; ++block) {
    const auto begin = pool.begin() + at + block * shape.block_bytes;
    if (std::any_of(begin, begin + shape.block_bytes, [](std::byte b) { return b != std::byte{kCanary}; }))
      touched.push_back(block);
  }
  return touched;
}

TEST_CASE("decoder: rows that pad a step touch no block, and rows their own slots alone", "[decoder][gpu]") {
  const SeededWeights weights(decoder_shape("tiny"), 5);
  for (const std::int64_t kv_bits : {16, 8, 4}) {
    const DecoderConfig config = small_config(16, kv_bits);
    const auto shape = decoder::kv_pool_shape(weights.shape(), kv_bits, config.block_size, config.num_blocks);
    DecoderRun run(weights, config, 3);
    std::vector<Tokens> prompts;
    for (std::uint64_t s = 0; s < 3; ++s) prompts.push_back(random_tokens(16 + static_cast<std::int64_t>(s), 512, s));
    StepBatch batch;
    for (std::size_t s = 0; s < 3; ++s) batch.rows.push_back(run.row(s, prompts[s], 0, std::ssize(prompts[s])));
    Tokens next = run.step(batch);
    for (int repeat = 0; repeat < 2; ++repeat) {  // as it is, then as a graph: three rows in a bucket of four
      for (std::size_t s = 0; s < 3; ++s) prompts[s].push_back(next[s]);
      for (std::size_t s = 0; s < 3; ++s) batch.rows[s] = run.row(s, prompts[s], std::ssize(prompts[s]) - 1, 1);
      run.device().set_bytes(run.decoder().device_pool().data(), kCanary, run.decoder().device_pool().size());
      next = run.step(batch);
      const auto pool = read_pool(run);
      std::vector<std::int64_t> own;
      for (std::size_t s = 0; s < 3; ++s)
        own.push_back(run.table(s)[(prompts[s].size() - 1) / static_cast<std::size_t>(config.block_size)]);
      std::sort(own.begin(), own.end());
      for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
        INFO("kv_bits " << kv_bits << ", layer " << layer << ", repeat " << repeat);
        CHECK(touched_blocks(pool, shape, shape.k_at(layer)) == own);
        CHECK(touched_blocks(pool, shape, shape.v_at(layer)) == own);
      }
    }
  }
}

TEST_CASE("decoder: a block is copied in every layer, before the step writes", "[decoder][gpu]") {
  const SeededWeights weights(decoder_shape("tiny"), 5);
  for (const std::int64_t kv_bits : {16, 4}) {
    DecoderRun run(weights, small_config(16, kv_bits), 2);
    Tokens all = random_tokens(20, 512, 1);
    StepBatch batch;
    batch.rows = {run.row(0, all, 0, 20)};
    all.push_back(run.step(batch).front());
    batch.rows = {run.row(0, all, 20, 1)};
    const TokenId alone = run.step(batch).front();
    // The second sequence takes the first one's full block, and a copy of its last.
    const std::vector<std::int32_t> table{run.table(0)[0], run.table(1)[1]};
    const std::vector<BlockCopy> copies{{.source = run.table(0)[1], .destination = run.table(1)[1]}};
    batch.rows.front().table = table;
    batch.copies = copies;
    CHECK(run.step(batch).front() == alone);
  }
}

TEST_CASE("decoder: batches that cannot be are refused in a sentence", "[decoder][gpu]") {
  const SeededWeights weights(decoder_shape("tiny"), 5);
  DecoderRun run(weights, small_config(16, 16), 1);
  Tokens all = random_tokens(129, 512, 1);
  StepBatch batch;
  CHECK_THROWS_WITH(run.step(batch), "a step must have a row, got none");
  batch.rows = {run.row(0, all, 0, 129)};
  CHECK_THROWS_WITH(run.step(batch), "length of a step must be at most 128, got 129");
  all[3] = 512;
  batch.rows = {run.row(0, all, 0, 20)};
  CHECK_THROWS_WITH(run.step(batch), "tokens must be 0 to 511, got 512");
}

}  // namespace
}  // namespace inferometer::test
