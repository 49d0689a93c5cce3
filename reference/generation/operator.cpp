// generation: its fields, and a run's result as a tensor.
#include <omp.h>

#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/generation/judged_tokens.hpp"
#include "reference/generation/problem.hpp"
#include "reference/generation/token_times.hpp"

namespace inferometer {
namespace {

using Problem = GenerationProblem;
using Tensors = GenerationTensors;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 20;

const std::vector<Field<Problem>> kFields = {
    {.name = "model",
     .member = &Problem::model,
     .doc = "shape of the decoder; its weights are random",
     .words = decoder_names()},
    {.name = "batch", .member = &Problem::batch, .doc = "sequences, each with a prompt of its own", .max = 65535},
    {.name = "prompt_tokens", .member = &Problem::prompt_tokens, .doc = "tokens of each prompt", .max = kMostTokens},
    {.name = "new_tokens", .member = &Problem::new_tokens, .doc = "tokens to generate for each", .max = kMostTokens},
    {.name = "weight_bits",
     .member = &Problem::weight_bits,
     .doc = "of the matrices in the layers: 16, or 8 and 4 rounded to nearest in groups of 128",
     .min = 4,
     .max = 16},
    {.name = "kv_bits", .member = &Problem::kv_bits, .doc = "of keys and values: 16, 8, 4", .min = 4, .max = 16},
    {.name = "block_size",
     .member = &Problem::block_size,
     .doc = "tokens of a block, where a cache is paged",
     .max = kMostTokens,
     .default_unsaid = true},
    {.name = "model_seed",
     .member = &Problem::model_seed,
     .doc = "seed of weights and prompts; --seed does not change it",
     .min = 0,
     .default_unsaid = true},
};

void require_bits(const char* field, std::int64_t bits) {
  if (bits != 16 && bits != 8 && bits != 4)
    throw ProblemError(field, std::string(field) + " must be 16, 8 or 4, got " + std::to_string(bits));
}

void validate(const Problem& p) {
  require_bits("weight_bits", p.weight_bits);
  require_bits("kv_bits", p.kv_bits);
  const DecoderShape& shape = decoder_shape(p.model);
  if (p.length() > shape.max_length)
    throw ProblemError("new_tokens", "prompt_tokens + new_tokens must be at most the " +
                                         std::to_string(shape.max_length) + " tokens of " + p.model + ", got " +
                                         std::to_string(p.length()));
  checked_product("new_tokens", {p.batch, p.length()});
  if (judging_flops(p) > kMostJudgingFlops)
    throw ProblemError("new_tokens", "prompt_tokens + new_tokens must be at most " +
                                         std::to_string(static_cast<std::int64_t>(kMostJudgingFlops / judging_flops(p) *
                                                                                  static_cast<double>(p.length()))) +
                                         " with " + p.model + ", so that the CPU can judge a sequence, got " +
                                         std::to_string(p.length()));
}

std::vector<TensorSpec> tensors(const Problem& p) {
  return {{.name = "prompts",
           .role = Role::input,
           .dtype = Dtype::i32,
           .shape = {p.batch, p.prompt_tokens},
           .source = generation_prompts(p)},
          {.name = "result", .role = Role::output, .dtype = Dtype::i32, .shape = {p.result_elements()}}};
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {.prompts = static_cast<const std::int32_t*>(pointers[0]), .result = static_cast<std::int32_t*>(pointers[1])};
}

// What a cache leaves to be done: every token passes the matrices once, and attends to those before it. Bytes: the
// weights once for each new token, and the keys and values that it reads.
Work work(const Problem& p) {
  const DecoderShape& s = decoder_shape(p.model);
  const auto embedding = static_cast<double>(s.vocabulary * s.hidden);
  const double layers = static_cast<double>(parameters(s)) - embedding * (s.tied_head ? 1 : 2);
  const auto batch = static_cast<double>(p.batch);
  const auto steps = static_cast<double>(p.new_tokens);
  const auto length = static_cast<double>(p.length() - 1);
  Work work;
  work.flops = 2 * batch * (layers * length + embedding * steps) +
               4 * batch * static_cast<double>(s.layers * s.q_size()) * length * (length + 1) / 2;
  const double mean_length = static_cast<double>(p.prompt_tokens) + (steps - 1) / 2;
  work.bytes = steps * (layers * static_cast<double>(p.weight_bits) / 8 + embedding * 2 +
                        mean_length * static_cast<double>(kv_bytes(p, 1)));
  return work;
}

std::vector<ExpectedSpan> expect(const Problem& p, const Inputs&, std::uint64_t, int) {
  return {
      {.tensor = "result", .begin = 0, .values = {static_cast<double>(p.batch), static_cast<double>(p.new_tokens)}}};
}

// Whole numbers: exact.
Tolerance tolerance(const Problem&, std::string_view) {
  return {.rel_l2 = 0, .max_error_over_rms = 0, .row_rel_l2 = 0};
}

std::span<const std::int32_t> result_of(const Problem& p, std::span<const void* const> tensors) {
  return {static_cast<const std::int32_t*>(tensors[1]), static_cast<std::size_t>(p.result_elements())};
}

std::string audit(const Problem& p, std::string_view, std::span<const void* const> tensors) {
  const auto tokens =
      result_of(p, tensors)
          .subspan(static_cast<std::size_t>(p.tokens_at()), static_cast<std::size_t>(p.batch * p.new_tokens));
  return audit_tokens(p, tokens, omp_get_num_procs());
}

std::vector<Metric> metrics(const Problem& p, const Inputs&, std::span<const void* const> tensors, int) {
  return generation_metrics(p, result_of(p, tensors));
}

const RegisterOperator<Generation> registered{{
    .summary = "greedy tokens behind random prompts: what a KV cache saves, and what a token takes",
    .fields = kFields,
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference =
        "shape; each token's logit against the greatest, and on average, by the decoder's equations in f64 over "
        "the tokens in front of it, in the first sequence and as many more as 2e12 FLOPs allow; allowed is what "
        "rounding activations to f16 explains",
    .tolerance = &tolerance,
    .audit = &audit,
    .metrics = &metrics,
    .metric_docs = generation_metric_docs(),
    .headline_metrics = {"tokens_per_s", "exponent", "token_at_first_ns", "token_at_last_ns", "kv_cache_bytes"},
}};

}  // namespace
}  // namespace inferometer
