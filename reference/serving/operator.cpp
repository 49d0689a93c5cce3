// serving: its fields, and a run as tensors.
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/kv_cache/layout.hpp"
#include "reference/kv_memory/model_shape.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/synthetic.hpp"
#include "reference/serving/problem.hpp"
#include "reference/serving/run_audit.hpp"
#include "reference/serving/run_metrics.hpp"

namespace inferometer {

constexpr std::int64_t kMostSmallParameters = 4'000'000;

std::int64_t ServingProblem::token_bytes() const {
  const DecoderShape& shape = decoder_shape(model);
  const ModelShape cache{.name = shape.name,
                         .layers = shape.layers,
                         .kv_heads = shape.kv_heads,
                         .head_dim = shape.head_dim,
                         .max_length = shape.max_length};
  return cache.token_bytes(kv_bits, 0);
}

std::int64_t ServingProblem::pool_block_tokens() const { return block_size == 0 ? max_length : block_size; }

std::int64_t ServingProblem::pool_blocks() const { return pool_bytes / (token_bytes() * pool_block_tokens()); }

std::int64_t ServingProblem::pool_tokens() const { return pool_blocks() * pool_block_tokens(); }

bool ServingProblem::is_small() const { return parameters(decoder_shape(model)) <= kMostSmallParameters; }

bool ServingProblem::fits(std::int64_t prompt, std::int64_t output) const {
  if (prompt < 1) return false;
  const std::int64_t stored = output == 0 ? 0 : prompt + output - 1;  // the last token is returned and never stored
  return stored <= max_length && stored <= pool_tokens();
}

namespace {

using Problem = ServingProblem;
using Tensors = ServingTensors;

constexpr std::int64_t kMostTokens = std::int64_t{1} << 30;

const std::vector<Field<Problem>> kFields = {
    {.name = "model",
     .member = &Problem::model,
     .doc = "shape of the decoder, with random weights",
     .words = decoder_names()},
    {.name = "trace",
     .member = &Problem::trace,
     .doc =
         "file of requests, .csv (Azure) or .jsonl (Mooncake), or a synthetic trace of lengths alone, as of kv_memory"},
    {.name = "requests",
     .member = &Problem::requests,
     .doc = "requests of the trace that are served, from its first on",
     .max = 100'000},
    {.name = "max_prompt",
     .member = &Problem::max_prompt,
     .doc = "tokens of a prompt; what is longer is cut to them",
     .max = kMostTokens},
    {.name = "max_output",
     .member = &Problem::max_output,
     .doc = "tokens of an answer; what is longer is cut to them",
     .max = kMostTokens},
    {.name = "slots",
     .member = &Problem::slots,
     .doc = "most requests that run at once: the rows of a step",
     .max = 1 << 20},
    {.name = "max_length",
     .member = &Problem::max_length,
     .doc = "tokens that a request may store, and that a contiguous slot has; longer requests are refused; 0: the "
            "model's limit",
     .min = 0,
     .max = kMostTokens},
    {.name = "pool_bytes",
     .member = &Problem::pool_bytes,
     .doc = "bytes of memory for the keys and values of all requests",
     .max = std::int64_t{1} << 50},
    {.name = "block_size",
     .member = &Problem::block_size,
     .doc = "tokens per block of the cache; 0: contiguous, a slot of max_length for each request that runs",
     .min = 0,
     .max = 1 << 20},
    {.name = "prefix_reuse",
     .member = &Problem::prefix_reuse,
     .doc = "whether blocks of equal prompt beginnings are shared and kept",
     .default_unsaid = true},
    {.name = "token_budget",
     .member = &Problem::token_budget,
     .doc = "tokens of a step, decodes and chunks of prompts together, at least slots; of policy chunked alone",
     .max = kMostTokens},
    {.name = "weight_bits",
     .member = &Problem::weight_bits,
     .doc = "bits of a weight in the layers: 16, 8 or 4, these with scales of groups of 128",
     .max = 16},
    {.name = "kv_bits",
     .member = &Problem::kv_bits,
     .doc = "bits of a stored key or value: 16, 8 or 4, these with a scale for each head",
     .max = 16},
    {.name = "attention",
     .member = &Problem::attention,
     .doc =
         "of prompts: flash, or materialized, which writes out the scores, on a GPU over contiguous slots of 16 bits "
         "alone; single tokens are attended to by split flash decoding with both",
     .words = {"flash", "materialized"}},
    {.name = "graphs",
     .member = &Problem::graphs,
     .doc = "whether a step of single tokens is launched as one CUDA graph"},
    {.name = "arrivals",
     .member = &Problem::arrivals,
     .doc =
         "when requests come, however the engine fares: all before the first step, at the trace's own times, or by a "
         "Poisson process",
     .words = {"all_at_start", "trace", "poisson"}},
    {.name = "rate",
     .member = &Problem::rate,
     .doc = "arrivals trace: how many times as fast as in the trace; poisson: requests a second",
     .real_min = 1e-6,
     .real_max = 1e9,
     .default_unsaid = true},
    {.name = "ttft_limit_ms",
     .member = &Problem::ttft_limit_ms,
     .doc = "milliseconds to the first token within which a request counts as good; 0: any",
     .default_unsaid = true},
    {.name = "tpot_limit_ms",
     .member = &Problem::tpot_limit_ms,
     .doc = "milliseconds per further token within which a request counts as good; 0: any",
     .default_unsaid = true},
    {.name = "machine",
     .member = &Problem::machine,
     .doc = "whose ceilings figures are set against, and whose costs cpu.simulated_* go by",
     .words = machine_names()},
    {.name = "trace_seed",
     .member = &Problem::trace_seed,
     .doc = "seed of a synthetic trace and of poisson arrivals; --seed does not change it",
     .min = 0,
     .default_unsaid = true},
};

void complete(Problem& p) {
  if (p.max_length == 0) p.max_length = decoder_shape(p.model).max_length;
}

void check_bits(const char* field, std::int64_t bits) {
  if (bits != 16 && bits != 8 && bits != 4)
    throw ProblemError(field, std::string(field) + " must be 16, 8 or 4, got " + std::to_string(bits));
}

void check_memory(const Problem& p) {
  const DecoderShape& shape = decoder_shape(p.model);
  if (p.max_length > shape.max_length)
    throw ProblemError("max_length", "max_length must be at most the " + std::to_string(shape.max_length) +
                                         " tokens of " + p.model + ", got " + std::to_string(p.max_length));
  if (p.pool_blocks() < 1)
    throw ProblemError("pool_bytes",
                       "pool_bytes must be at least the " + std::to_string(p.token_bytes() * p.pool_block_tokens()) +
                           " bytes of " + std::to_string(p.pool_block_tokens()) + " tokens, which are a " +
                           (p.block_size == 0 ? "slot" : "block") + ", got " + std::to_string(p.pool_bytes));
  if (p.pool_blocks() > std::numeric_limits<std::int32_t>::max())
    throw ProblemError("block_size", "block_size must cut the pool into less than 2^31 blocks, got " +
                                         std::to_string(p.pool_blocks()) + " of " + std::to_string(p.block_size) +
                                         " tokens");
}

void check_trace(const Problem& p) {
  if (is_synthetic(p.trace) && p.arrivals == "trace")
    throw ProblemError("arrivals",
                       "arrivals must be all_at_start or poisson for a synthetic distribution, which has no "
                       "times, got 'trace'");
  try {
    if (const auto held = static_cast<std::int64_t>(served_requests(p).size()); held < p.requests)
      throw ProblemError("requests", "requests must be at most the " + std::to_string(held) + " of " + p.trace +
                                         ", got " + std::to_string(p.requests));
  } catch (const TraceError& error) {
    throw ProblemError("trace", error.what());
  }
}

void validate(const Problem& p) {
  check_bits("weight_bits", p.weight_bits);
  check_bits("kv_bits", p.kv_bits);
  check_kv_quantization(p.kv_bits, "integer", 0, decoder_shape(p.model).head_dim);
  check_memory(p);
  check_trace(p);
}

std::vector<TensorSpec> tensors(const Problem& p) {
  return {{.name = "run", .role = Role::output, .dtype = Dtype::i32, .shape = {run_elements(p)}}};
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {.run = static_cast<std::int32_t*>(pointers[0])};
}

// What a policy computes follows from the requests and differs between policies; figures set it against ceilings.
Work work(const Problem&) { return {}; }

// What the problem alone determines: who is served. The rest is for the audit.
std::vector<ExpectedSpan> expect(const Problem& p, const Inputs&, std::uint64_t, int) {
  std::vector<ExpectedSpan> spans;
  for (const KvRequest& request : served_requests(p))
    spans.push_back({.tensor = "run",
                     .begin = kServingRequestsBegin + request.id * kServingRequestFields,
                     .values = {p.fits(request.prompt, request.output) ? 1.0 : 0.0}});
  return spans;
}

// Whole numbers: exact.
Tolerance tolerance(const Problem&, std::string_view) {
  return {.rel_l2 = 0, .max_error_over_rms = 0, .row_rel_l2 = 0};
}

ServingRun run_of(const Problem& p, std::span<const void* const> tensors) {
  return read_run(p, static_cast<const std::int32_t*>(tensors[0]));
}

std::string audit(const Problem& p, std::string_view variant, std::span<const void* const> tensors) {
  return audit_run(p, variant, run_of(p, tensors));
}

std::vector<Metric> metrics(const Problem& p, const Inputs&, std::span<const void* const> tensors, int) {
  return run_metrics(p, run_of(p, tensors));
}

const RegisterOperator<Serving> registered{{
    .summary = "requests of a trace through a serving engine: throughput, latencies, and where the time goes",
    .fields = kFields,
    .complete = &complete,
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference =
        "who is served; every token of a simulation; of a small decoder the first 2,000 tokens in f64; balances "
        "of slots, tokens, cache reads and times; steps of contiguous slots recounted",
    .tolerance = &tolerance,
    .audit = &audit,
    .metrics = &metrics,
    .metric_docs = run_metric_docs(),
    .headline_metrics = {"output_tokens_per_s", "slot_occupancy_ratio", "tpot_p50_ns", "steps", "roofline_ratio"},
}};

}  // namespace
}  // namespace inferometer
