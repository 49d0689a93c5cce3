// The chain of a layer's products for several tokens, against the equations in f64, and what holds between launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/common/sm90_only.hpp"
#include "tests/kernels/decoder/chain_run.hpp"
#include "tests/kernels/decoder/decoder_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/rel_l2.hpp"

namespace inferometer::test {
namespace {

using Vectors = ChainRun::Vectors;

constexpr double kTolerance = 1e-3;  // product_chain_gpu_test.cpp

void check_layers(const ChainShape& shape, std::int64_t bits, const std::vector<std::int64_t>& tokens,
                  std::size_t layers = 3) {
  if (!on_sm90()) return;
  ChainRun run(shape, bits, 3, tokens.front());
  for (const std::int64_t count : tokens) {
    INFO("hidden " << shape.hidden << ", attention " << shape.attention << ", intermediate " << shape.intermediate
                   << ", rows of q, k and v " << shape.qkv_rows << ", bits " << bits << ", tokens " << count);
    run.set_tokens(count);
    run.reset();
    for (std::size_t layer = 0; layer < layers; ++layer) {
      const Vectors before = run.results();
      const bool has_next = layer + 1 < run.layers();
      run.launch(layer, has_next);
      const Vectors got = run.results();
      const Vectors expected = run.expected(layer, before[0]);
      CHECK(rel_l2(got[0], expected[0]) < kTolerance);
      if (has_next) CHECK(rel_l2(got[1], expected[1]) < kTolerance);
      if (!has_next) CHECK(got[1] == before[1]);
    }
  }
}

// From most blocks without an item to several items a block.
void check_shapes(std::int64_t bits) {
  for (const ChainShape& shape : {ChainShape{128, 128, 128, 128}, {256, 256, 512, 512}})
    check_layers(shape, bits, {2, 8, 9, 16, 17, 32, 47, 64});
  check_layers({1152, 1024, 2816, 1280}, bits, {9, 32, 64});
  check_layers({4096, 512, 2048, 640}, bits, {17});
  check_layers({512, 4096, 20480, 256}, bits, {32});
}

TEST_CASE("wide chain: weights of 16 bits", "[decoder][wide_chain][gpu]") { check_shapes(16); }

TEST_CASE("wide chain: weights of 4 bits", "[decoder][wide_chain][gpu]") { check_shapes(4); }

TEST_CASE("wide chain: a layer of Llama 3 8B", "[decoder][wide_chain][gpu][large]") {
  for (const std::int64_t bits : {4, 16}) check_layers({4096, 4096, 14336, 6144}, bits, {8, 16}, 1);
}

TEST_CASE("wide chain: the same bits in every launch and after a reset", "[decoder][wide_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4})
    for (const std::int64_t tokens : {5, 32}) {
      ChainRun run({4096, 1024, 2816, 1280}, bits, 3, tokens);
      const auto step = [&] {
        run.reset();
        for (int turn = 0; turn < 30; ++turn)
          for (std::size_t layer = 0; layer < run.layers(); ++layer) run.launch(layer);
        return run.results();
      };
      const Vectors once = step();
      CHECK(step() == once);
      run.launch(0);
      run.wide().reset(run.stream());
      CHECK(step() == once);
    }
}

TEST_CASE("wide chain: a NaN with all bits set stays in its token", "[decoder][wide_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4}) {
    const ChainShape shape{1152, 1024, 2816, 1280};
    ChainRun run(shape, bits, 2, 3);
    run.reset();
    run.set_h(shape.hidden + 17, decoder::kUnsentFloat);
    run.launch(0);
    for (const std::vector<double>& vector : run.results()) {
      const auto third = std::ssize(vector) / 3;
      for (int token = 0; token < 3; ++token)
        CHECK(std::all_of(vector.begin() + token * third, vector.begin() + (token + 1) * third,
                          [&](double value) { return std::isnan(value) == (token == 1); }));
    }
  }
}

TEST_CASE("wide chain: steps of several rows by it and by the products' own kernels give the same logits",
          "[decoder][wide_chain][gpu]") {
  const SeededWeights weights(decoder_shape("tiny"), 35);
  for (const std::int64_t bits : {16, 4}) {
    DecoderConfig config = small_config(bits, 16);
    config.num_blocks *= 4;
    config.max_rows = 32;
    DecoderRun run(weights, config, 32);
    std::vector<Tokens> all;
    for (std::uint64_t s = 0; s < 32; ++s) all.push_back(random_tokens(10 + static_cast<std::int64_t>(s) % 7, 512, s));
    for (std::size_t s = 0; s < all.size(); ++s) {
      StepBatch prompt;
      prompt.rows = {run.row(s, all[s], 0, std::ssize(all[s]) - 1)};
      run.step(prompt);
    }
    for (const std::size_t rows : {2, 3, 8, 16, 31, 32}) {
      StepBatch batch;
      for (std::size_t s = 0; s < rows; ++s) batch.rows.push_back(run.row(s, all[s], std::ssize(all[s]) - 1, 1));
      std::vector<std::vector<float>> logits;
      for (const std::int64_t most : {std::int64_t{1}, decoder::kMostWideTokens, decoder::kMostWideTokens}) {
        decoder::lab_wide_tokens = most;
        run.step(batch);
        logits.push_back(run.decoder().logits());
      }
      decoder::lab_wide_tokens = decoder::kMostWideTokens;
      INFO(bits << " bits, " << rows << " rows");
      CHECK(rel_l2(logits[1], logits[0]) < 4e-3);  // as far as either may be from the equations
      CHECK(logits[2] == logits[1]);               // the second's graph
    }
  }
}

}  // namespace
}  // namespace inferometer::test
