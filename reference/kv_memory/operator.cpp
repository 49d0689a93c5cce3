// kv_memory: its fields, and the ledger as a tensor.
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/kv_cache/layout.hpp"
#include "reference/kv_memory/ledger_audit.hpp"
#include "reference/kv_memory/model_shape.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/recount.hpp"
#include "reference/kv_memory/synthetic.hpp"

namespace inferometer {

std::int64_t KvMemoryProblem::token_bytes() const { return model_shape(model).token_bytes(kv_bits, kv_group_size); }

std::int64_t KvMemoryProblem::pool_slots() const { return pool_bytes / token_bytes(); }

namespace {

using Problem = KvMemoryProblem;
using Tensors = KvMemoryTensors;

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

const std::vector<Field<Problem>> kFields = {
    {.name = "trace",
     .member = &Problem::trace,
     .doc = "file of requests, .csv (Azure) or .jsonl (Mooncake), or a synthetic trace: synthetic_sharegpt, "
            "synthetic_alpaca, synthetic_sharegpt4, synthetic_azure_code, synthetic_azure_conv or "
            "synthetic_mooncake, in which a request longer than max_length is drawn again"},
    {.name = "requests",
     .member = &Problem::requests,
     .doc = "requests of the trace that run, from its first on; 0: all of a file",
     .min = 0},
    {.name = "model",
     .member = &Problem::model,
     .doc = "shape that says how many bytes the keys and values of a token take",
     .words = model_names()},
    {.name = "max_length",
     .member = &Problem::max_length,
     .doc =
         "tokens that a request may store, and that cpu.reserve_max reserves; longer requests of a file are refused; "
         "0: the model's limit",
     .min = 0,
     .max = std::int64_t{1} << 30},
    {.name = "pool_bytes",
     .member = &Problem::pool_bytes,
     .doc = "bytes of memory for the keys and values of all requests",
     .max = kMostBytes},
    {.name = "block_size",
     .member = &Problem::block_size,
     .doc = "tokens per block of the paged policies",
     .max = std::int64_t{1} << 20},
    {.name = "contiguous",
     .member = &Problem::contiguous,
     .doc = "allocator of contiguous reservations, which paged policies do not use: the lowest range that fits, or "
            "binary buddies",
     .words = {"first_fit", "buddy"}},
    {.name = "kv_bits", .member = &Problem::kv_bits, .doc = "bits of a stored key or value: 16, 8 or 4", .max = 16},
    {.name = "kv_group_size",
     .member = &Problem::kv_group_size,
     .doc = "elements of head_dim that share a scale at 8 and 4 bits; 0: head_dim",
     .min = 0},
    {.name = "order",
     .member = &Problem::order,
     .doc = "whom a policy admits next: the first to arrive, or the fewest prompt tokens of the next 1024",
     .words = {"fcfs", "shortest_first"}},
    {.name = "arrivals",
     .member = &Problem::arrivals,
     .doc = "when requests arrive: before the first step, or when the trace says",
     .words = {"all_at_start", "trace"}},
    {.name = "step_ms",
     .member = &Problem::step_ms,
     .doc = "milliseconds that a step takes, where requests arrive when the trace says",
     .real_min = 1e-3,
     .real_max = 1e6},
    {.name = "watermark_ratio",
     .member = &Problem::watermark_ratio,
     .doc = "share of the blocks, 0 to 0.5, that stays free when a paged policy admits a request beside others",
     .real_max = 0.5},
    {.name = "trace_seed",
     .member = &Problem::trace_seed,
     .doc = "seed of a synthetic trace; --seed does not change it",
     .min = 0},
};

void complete(Problem& p) {
  if (p.max_length == 0) p.max_length = model_shape(p.model).max_length;
}

void validate(const Problem& p) {
  check_kv_quantization(p.kv_bits, "integer", p.kv_group_size, model_shape(p.model).head_dim);
  if (p.pool_slots() < 1)
    throw ProblemError("pool_bytes", "pool_bytes must be at least the " + std::to_string(p.token_bytes()) +
                                         " bytes of one token, got " + std::to_string(p.pool_bytes));
  if (p.block_size > p.pool_slots())
    throw ProblemError("block_size", "block_size must be at most the " + std::to_string(p.pool_slots()) +
                                         " tokens that the pool holds, got " + std::to_string(p.block_size));
  if (p.pool_slots() / p.block_size > std::numeric_limits<std::int32_t>::max())
    throw ProblemError("block_size", "block_size must cut the pool into less than 2^31 blocks, got " +
                                         std::to_string(p.pool_slots() / p.block_size) + " of " +
                                         std::to_string(p.block_size) + " tokens");
  if (is_synthetic(p.trace) && p.requests == 0)
    throw ProblemError("requests", "requests must be at least 1 for a synthetic distribution, which has no end, got 0");
  if (is_synthetic(p.trace) && p.arrivals == "trace")
    throw ProblemError("arrivals",
                       "arrivals must be all_at_start for a synthetic distribution, which has no times, "
                       "got 'trace'");
  try {
    open_requests(p);
  } catch (const TraceError& error) {
    throw ProblemError("trace", error.what());
  }
  if (is_synthetic(p.trace) || p.requests == 0) return;
  if (const std::int64_t held = count_requests(p, p.requests); held < p.requests)
    throw ProblemError("requests", "requests must be at most the " + std::to_string(held) + " of " + p.trace +
                                       ", or 0 for all of them, got " + std::to_string(p.requests));
}

std::vector<TensorSpec> tensors(const Problem&) {
  return {{.name = "ledger",
           .role = Role::output,
           .dtype = Dtype::i32,
           .shape = {static_cast<std::int64_t>(kKvCounts), static_cast<std::int64_t>(kKvLimbs)}}};
}

Tensors bind(const Problem&, std::span<void* const> pointers) {
  return {.ledger = static_cast<std::int32_t*>(pointers[0])};
}

// A simulation: neither its arithmetic nor its bytes say anything about a machine.
Work work(const Problem&) { return {}; }

// What the trace alone determines; the rest is for the audit.
std::vector<ExpectedSpan> expect(const Problem& p, const Inputs&, std::uint64_t, int) {
  std::int32_t limbs[kKvCounts * kKvLimbs] = {};
  KvLedger expected = count_trace(p);
  expected[KvCount::pool_slots] = p.pool_slots();
  expected.write(limbs);
  std::vector<ExpectedSpan> spans;
  for (const KvCount count : {KvCount::pool_slots, KvCount::requests, KvCount::prompt_tokens, KvCount::output_tokens}) {
    const std::size_t begin = static_cast<std::size_t>(count) * kKvLimbs;
    spans.push_back({.tensor = "ledger",
                     .begin = static_cast<std::int64_t>(begin),
                     .values = std::vector<double>(limbs + begin, limbs + begin + kKvLimbs)});
  }
  return spans;
}

// Whole numbers: exact.
Tolerance tolerance(const Problem&, std::string_view) {
  return {.rel_l2 = 0, .max_error_over_rms = 0, .row_rel_l2 = 0};
}

KvLedger ledger_of(std::span<const void* const> tensors) {
  return KvLedger::read({static_cast<const std::int32_t*>(tensors[0]), kKvCounts * kKvLimbs});
}

std::string audit(const Problem& p, std::string_view variant, std::span<const void* const> tensors) {
  return audit_ledger(p, variant, ledger_of(tensors));
}

std::vector<Metric> metrics(const Problem& p, const Inputs&, std::span<const void* const> tensors, int) {
  return ledger_metrics(p, ledger_of(tensors));
}

// Slot-steps: slots of the pool, one a token, summed over steps.
const std::vector<MetricInfo> kMetricDocs = {
    {"kv_token_share_of_pool_ratio", "slot-steps that hold a token of a running request, of all slot-steps"},
    {"kv_token_share_of_pool_under_load_ratio", "kv_token_share_of_pool_ratio over the steps in which a request waits"},
    {"kv_token_share_of_allocated_ratio", "slot-steps that hold a token, of those that requests have taken"},
    {"reserved_share_ratio", "slot-steps taken for a token still to come, of all"},
    {"internal_share_ratio", "slot-steps taken for a request that will never fill them, of all"},
    {"external_share_ratio", "slot-steps free but of no use to the request whose turn it is, of all"},
    {"cached_share_ratio", "slot-steps kept for prompts that may begin alike, of all"},
    {"free_share_ratio", "slot-steps free, of all"},
    {"shared_saved_ratio", "slot-steps that sharing of blocks saves, over all"},
    {"reused_prompt_ratio", "prompt tokens found in the cache at first admission, of all prompt tokens"},
    {"admitted_mean", "requests that run at once, mean over steps"},
    {"admitted_under_load_mean", "admitted_mean over the steps in which a request waits"},
    {"admitted_peak", "most requests that ran at once"},
    {"requests_seen", "requests of the trace"},
    {"refusals", "requests longer than the model or the pool allows, or without a prompt"},
    {"preemptions", "times that a running request gave up all its slots, to be computed again"},
    {"recomputed_tokens", "tokens lost to preemptions"},
    {"steps", "steps of the simulation: each running request computes one token"},
    {"loaded_steps", "steps in which a request waits"},
    {"pool_slots", "tokens that the pool holds"},
    {"token_bytes", "bytes of one token's keys and values"}};

const RegisterOperator<KvMemory> registered{{
    .summary = "what a policy for KV-cache memory wastes on a trace of requests",
    .fields = kFields,
    .complete = &complete,
    .validate = &validate,
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference =
        "counts of the trace; policies other than cpu.paged_prefix: every request and step recounted one by one, up "
        "to 2,000,000 outputs, 500,000,000 requests x pool slots and 50,000,000 steps",
    .tolerance = &tolerance,
    .audit = &audit,
    .metrics = &metrics,
    .metric_docs = kMetricDocs,
    .headline_metrics = {"kv_token_share_of_pool_under_load_ratio", "kv_token_share_of_allocated_ratio",
                         "admitted_under_load_mean", "preemptions", "refusals"},
}};

}  // namespace
}  // namespace inferometer
