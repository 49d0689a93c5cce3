// The GPU's logits against the equations, on the tiny shape with every switch and width of bits.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/decoder/product_chain_gpu.hpp"
#include "reference/decoder/equations.hpp"
#include "tests/kernels/decoder/decoder_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/rel_l2.hpp"

namespace inferometer::test {
namespace {

DecoderShape tiny() { return decoder_shape("tiny"); }

// f16 activations: each of the ten tensors between the layers of the tiny shape is rounded by 2^-11 / sqrt(3) of itself
// on average, which adds up to 1e-3; 4e-3 is four times that. A key or value whose code falls on the other side of a
// tie errs by a step: with 8 bits 0.02 of a deviation for one in 20, with 4 bits 0.4 for one in 300, so 5e-3 and 2e-2.
double tolerance(std::int64_t kv_bits) { return kv_bits == 16 ? 4e-3 : kv_bits == 8 ? 1e-2 : 4e-2; }

// A prompt in one piece, then single tokens that are given, so that an error does not choose what comes next.
void check_logits(const DecoderShape& shape, std::int64_t weight_bits, std::int64_t kv_bits) {
  const SeededWeights weights(shape, 7);
  const Tokens all = random_tokens(45, shape.vocabulary, 3);
  const DecoderMatrix expected = decoder_logits(weights, all, {.weights = weight_bits, .kv = kv_bits});
  DecoderRun run(weights, small_config(weight_bits, kv_bits), 1);
  std::int64_t cached = 0;
  for (const std::int64_t length : {37, 38, 39, 40, 44, 45}) {  // 44: a chunk behind cached tokens
    const Tokens prefix(all.begin(), all.begin() + length);
    const std::vector<float> logits = run.logits_after(prefix, cached);
    INFO("weight_bits " << weight_bits << ", kv_bits " << kv_bits << ", " << length << " tokens");
    CHECK(rel_l2(logits, expected.row(length - 1)) < tolerance(kv_bits));
    cached = length;
  }
}

TEST_CASE("decoder: logits are those of the equations", "[decoder][gpu]") { check_logits(tiny(), 16, 16); }

TEST_CASE("decoder: logits are those of the equations with a tied head", "[decoder][gpu]") {
  DecoderShape shape = tiny();
  shape.tied_head = true;
  check_logits(shape, 16, 16);
}

TEST_CASE("decoder: logits are those of the equations with biases of q, k and v", "[decoder][gpu]") {
  DecoderShape shape = tiny();
  shape.qkv_bias = true;
  check_logits(shape, 16, 16);
}

TEST_CASE("decoder: logits are those of the equations with norms of heads", "[decoder][gpu]") {
  DecoderShape shape = tiny();
  shape.qk_norm = true;
  check_logits(shape, 16, 16);
}

TEST_CASE("decoder: logits are those of the equations with wide heads, of which one KV head serves five",
          "[decoder][gpu]") {
  DecoderShape shape = tiny();
  shape.q_heads = 5;
  shape.kv_heads = 1;
  shape.head_dim = 128;
  shape.rope_theta = 5e5;
  check_logits(shape, 16, 16);
}

TEST_CASE("decoder: logits are those of the equations with quantised weights", "[decoder][gpu]") {
  check_logits(tiny(), 8, 16);
  check_logits(tiny(), 4, 16);
}

// Steps of one token too: their products are those of any number of tokens then, as with weights of 8 bits.
TEST_CASE("decoder: logits are those of the equations with a size that the chain of products does not take",
          "[decoder][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  DecoderShape shape = tiny();
  shape.intermediate = 544;
  for (const std::int64_t weight_bits : {16, 4}) {
    REQUIRE(decoder::chain_unsupported({256, 256, 544, 512}, weight_bits, shape.layers).has_value());
    check_logits(shape, weight_bits, 16);
  }
}

TEST_CASE("decoder: logits are those of the equations with quantised keys and values", "[decoder][gpu]") {
  check_logits(tiny(), 16, 8);
  check_logits(tiny(), 16, 4);
  check_logits(tiny(), 4, 4);
}

TEST_CASE("decoder: the comparison of logits fails for another theta, and for weights that were not quantised",
          "[decoder][gpu]") {
  DecoderShape shape = tiny();
  const Tokens all = random_tokens(45, shape.vocabulary, 3);
  DecoderRun run(SeededWeights(shape, 7), small_config(16, 16), 1);
  const std::vector<float> logits = run.logits_after(all, 0);
  shape.rope_theta *= 2;
  CHECK(rel_l2(logits, decoder_logits(SeededWeights(shape, 7), all, {}).row(44)) > tolerance(4));
  CHECK(rel_l2(logits, decoder_logits(SeededWeights(tiny(), 7), all, {.weights = 4}).row(44)) > tolerance(4));
}

}  // namespace
}  // namespace inferometer::test
