#include "reference/serving/run_metrics.hpp"

#include <cmath>
#include <limits>
#include <string>

namespace inferometer {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kNsPerS = 1e9;
constexpr double kNsPerMs = 1e6;

double ratio(double part, double whole) { return whole > 0 ? part / whole : kNotANumber; }

std::vector<RequestRecord> served(const ServingRun& run) {
  std::vector<RequestRecord> records;
  for (const auto& request : run.requests)
    if (request) records.push_back(*request);
  return records;
}

LatencyLimits limits_of(const ServingProblem& p) {
  LatencyLimits limits;
  if (p.ttft_limit_ms > 0) limits.ttft_ns = kNsPerMs * p.ttft_limit_ms;
  if (p.tpot_limit_ms > 0) limits.tpot_ns = kNsPerMs * p.tpot_limit_ms;
  return limits;
}

void add_latencies(std::vector<Metric>& metrics, const std::string& name, const LatencySummary& summary) {
  if (summary.samples == 0) return;
  metrics.push_back({name + "_p50_ns", summary.p50_ns});
  metrics.push_back({name + "_p90_ns", summary.p90_ns});
  metrics.push_back({name + "_p99_ns", summary.p99_ns});
  metrics.push_back({name + "_mean_ns", summary.mean_ns});
}

void add_throughput(std::vector<Metric>& metrics, const ServingProblem& p, const ServingRun& run) {
  const std::vector<RequestRecord> records = served(run);
  const auto refused = static_cast<std::int64_t>(run.requests.size() - records.size());
  const ServingMetrics of = serving_metrics(records, refused, limits_of(p));
  metrics.insert(metrics.end(), {{"output_tokens_per_s", of.output_tokens_per_s},
                                 {"total_tokens_per_s", of.total_tokens_per_s},
                                 {"requests_per_s", of.requests_per_s},
                                 {"goodput_per_s", of.goodput_per_s},
                                 {"goodput_ratio", of.goodput_ratio},
                                 {"completed", static_cast<double>(of.completed)},
                                 {"refusals", static_cast<double>(refused)},
                                 {"prompt_tokens", static_cast<double>(of.prompt_tokens)},
                                 {"output_tokens", static_cast<double>(of.output_tokens)}});
  add_latencies(metrics, "ttft", of.ttft);
  add_latencies(metrics, "tpot", of.tpot);
  add_latencies(metrics, "itl", of.itl);
  add_latencies(metrics, "end_to_end", of.end_to_end);
}

void add_slots(std::vector<Metric>& metrics, const ServingProblem& p, const ServingRun& run) {
  const ServingLedger& ledger = run.ledger;
  const auto steps = static_cast<double>(ledger.steps);
  metrics.push_back({"slot_occupancy_ratio", slot_occupancy(ledger)});
  for (const SlotShare& share : slot_shares(ledger))
    if (share.state != "producing") metrics.push_back({"slots_" + std::string(share.state) + "_ratio", share.share});
  metrics.insert(metrics.end(),
                 {{"steps", steps},
                  {"steps_least", static_cast<double>(least_steps(p, run))},
                  {"running_peak", static_cast<double>(ledger.peak_running)},
                  {"padding_ratio", padding_share(ledger)},
                  {"preemptions", static_cast<double>(ledger.preemptions)},
                  {"recomputed_tokens", static_cast<double>(ledger.recomputed_tokens)},
                  {"reused_tokens", static_cast<double>(ledger.reused_tokens)},
                  {"kv_token_share_of_pool_ratio",
                   ratio(static_cast<double>(ledger.kv_token_steps), steps * static_cast<double>(p.pool_tokens()))},
                  {"kv_token_share_of_allocated_ratio",
                   ratio(static_cast<double>(ledger.kv_token_steps), static_cast<double>(ledger.kv_taken_steps))},
                  {"kv_peak_bytes", static_cast<double>(ledger.kv_taken_peak * p.token_bytes())},
                  {"weights_bytes", static_cast<double>(layer_weight_bytes(p) + head_weight_bytes(p))}});
}

// Where the time goes: shares of what passes from the first arrival to the end. They sum to 1.
void add_times(std::vector<Metric>& metrics, const ServingProblem& p, const ServingRun& run) {
  const ServingTimes& times = run.times;
  const auto end = static_cast<double>(times.end_ns);
  const auto share = [&](std::int64_t ns) { return ratio(static_cast<double>(ns), end); };
  const auto steps = static_cast<double>(run.ledger.steps);
  const double step_ns = static_cast<double>(times.end_ns - times.idle_ns);
  metrics.insert(metrics.end(),
                 {{"idle_ratio", share(times.idle_ns)},
                  {"host_gap_ratio", share(times.host_ns)},
                  {"launch_gap_ratio", share(times.end_ns - times.busy_ns - times.idle_ns - times.host_ns)},
                  {"step_mean_ns", ratio(step_ns, steps)},
                  {"step_roofline_ns", ratio(static_cast<double>(times.roofline_ns), steps)}});
  if (run.clock == ServingClock::host) return;  // ceilings are of problem.machine, not of this host
  const double bytes = steps * static_cast<double>(layer_weight_bytes(p) + head_weight_bytes(p)) +
                       static_cast<double>(run.work.keys * p.token_bytes());
  const double flops = layer_flops(p) * static_cast<double>(run.ledger.computed_tokens) +
                       head_flops(p) * static_cast<double>(run.work.sampled) +
                       pair_flops(p) * static_cast<double>(run.work.pairs);
  const MachineRates ceiling = ceiling_rates(p);
  metrics.insert(metrics.end(), {{"gpu_busy_ratio", share(times.busy_ns)},
                                 {"mbu_ratio", ratio(bytes / ceiling.weights_bytes_per_s * kNsPerS, end)},
                                 {"mfu_ratio", ratio(flops / ceiling.matmul_flops_per_s * kNsPerS, end)},
                                 {"roofline_ratio", share(times.roofline_ns)}});
  if (run.clock == ServingClock::device)
    metrics.push_back(
        {"cost_model_rel_error", ratio(std::fabs(static_cast<double>(times.predicted_ns) - step_ns), step_ns)});
}

// Of all tokens of all requests in their order, 52 bits, which a number in JSON holds exactly: FNV-1a.
double fingerprint(const ServingRun& run) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const auto& request : run.requests)
    if (request)
      for (const std::int32_t token : request->outputs)
        hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3ULL;
  return static_cast<double>(hash >> 12);
}

}  // namespace

std::vector<Metric> run_metrics(const ServingProblem& p, const ServingRun& run) {
  std::vector<Metric> metrics;
  add_throughput(metrics, p, run);
  add_slots(metrics, p, run);
  add_times(metrics, p, run);
  const bool stamps[] = {over_saturated(p, run), warm_prefix_cache(p, run), clock_drift(run)};
  metrics.insert(metrics.end(), {{"simulated", run.clock == ServingClock::simulated ? 1.0 : 0.0},
                                 {"over_saturated", stamps[0] ? 1.0 : 0.0},
                                 {"warm_prefix_cache", stamps[1] ? 1.0 : 0.0},
                                 {"clock_drift", stamps[2] ? 1.0 : 0.0},
                                 {"valid", stamps[0] || stamps[1] || stamps[2] ? 0.0 : 1.0},
                                 {"tokens_fingerprint", fingerprint(run)}});
  return metrics;
}

std::vector<MetricInfo> run_metric_docs() {
  std::vector<MetricInfo> docs = {
      {"output_tokens_per_s", "outputs of completed requests, over the time from the first arrival to the last output"},
      {"total_tokens_per_s", "the same with their prompts"},
      {"requests_per_s", "completed requests over the same time"},
      {"goodput_per_s", "requests that keep ttft_limit_ms and tpot_limit_ms, over the same time"},
      {"goodput_ratio", "of all requests, refused ones included"},
      {"completed", "requests that got all their outputs"},
      {"refusals", "requests that could never fit, or have no prompt"},
      {"prompt_tokens", "of completed requests"},
      {"output_tokens", "of completed requests"}};
  const std::vector<MetricInfo> latencies = {
      {"ttft", "time from the planned arrival to the first token"},
      {"tpot", "time per output token behind the first: (end to end - TTFT) / (outputs - 1), one sample a request"},
      {"itl", "time between two outputs of a request, one sample a pair"},
      {"end_to_end", "time from the planned arrival to the last token"}};
  for (const MetricInfo& latency : latencies)
    for (const auto& [suffix, name] : {std::pair{"_p50_ns", "median"}, std::pair{"_p90_ns", "90th percentile"},
                                       std::pair{"_p99_ns", "99th percentile"}, std::pair{"_mean_ns", "mean"}})
      docs.push_back({latency.name + suffix, std::string(name) + ": " + latency.doc});
  const std::vector<MetricInfo> rest = {
      {"slot_occupancy_ratio", "slot-steps whose row gives a token that is kept, of steps x slots"},
      {"slots_prefilling_ratio", "slot-steps whose row computes a part of a prompt"},
      {"slots_discarded_ratio", "slot-steps of requests that were aborted in them"},
      {"slots_stalled_ratio", "slot-steps whose request waits while prompts run alone"},
      {"slots_ended_ratio", "slot-steps whose request has ended while its batch has not"},
      {"slots_blocked_ratio", "slot-steps empty although a request waits: for memory, for budget, for a batch to end"},
      {"slots_idle_ratio", "slot-steps empty, and nobody waits; with occupancy these sum to 1"},
      {"steps", "steps of the engine"},
      {"steps_least", "no schedule needs fewer: outputs over slots, or the longest answer"},
      {"running_peak", "most requests that ran at once"},
      {"padding_ratio", "token positions computed in vain, of all"},
      {"preemptions", "times that a running request gave up its blocks"},
      {"recomputed_tokens", "tokens computed again after that"},
      {"reused_tokens", "tokens found in the cache at admissions"},
      {"kv_token_share_of_pool_ratio", "tokens of running requests over the pool, mean over steps"},
      {"kv_token_share_of_allocated_ratio", "the same over what requests have taken or reserved"},
      {"kv_peak_bytes", "most of the pool that was taken or reserved at once"},
      {"weights_bytes", "that a step reads: the layers and the head"},
      {"gpu_busy_ratio", "time in which the GPU computes, of all"},
      {"idle_ratio", "time in which nothing runs and nobody waits"},
      {"host_gap_ratio", "time between steps in which the host schedules and moves inputs and outputs"},
      {"launch_gap_ratio", "the other time in which the GPU waits: for launches"},
      {"mbu_ratio", "(steps x weights_bytes + cached tokens read x their bytes) / (time x machine's read bandwidth)"},
      {"mfu_ratio",
       "(2 flops a weight and token computed, 4 head_dim a query head and key) / (time x machine's f16 peak)"},
      {"step_mean_ns", "time without idle_ratio, over steps"},
      {"step_roofline_ns", "least time of the same steps at the machine's ceilings (step_cost.hpp), over steps"},
      {"roofline_ratio", "least time of all steps, of the time"},
      {"cost_model_rel_error", "what cpu.simulated_* would say of the same steps, against the GPU's time"},
      {"simulated", "1: times are of the cost model; 0: measured"},
      {"over_saturated",
       "1: more requests than slots still waited for a first token when the last one came: latencies "
       "are the queue's"},
      {"warm_prefix_cache", "1: a prompt found tokens in the cache that nobody in this run had computed"},
      {"clock_drift", "1: two clocks differ by more than 1 %"},
      {"valid", "1: none of the three stamps before"},
      {"tokens_fingerprint", "hash of all outputs: equal where all tokens are"}};
  docs.insert(docs.end(), rest.begin(), rest.end());
  return docs;
}

}  // namespace inferometer
