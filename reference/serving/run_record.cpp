#include "reference/serving/run_record.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

#include "reference/serving/problem.hpp"

namespace inferometer {
namespace {

constexpr int kLimbBits = 21;
constexpr std::int64_t kOutputFields = 1 + kServingLimbs;  // token, time
constexpr std::int64_t kLimbMask = (std::int64_t{1} << kLimbBits) - 1;

void write_limbs(std::int64_t value, std::int32_t* limbs) {
  if (value < 0) throw std::out_of_range("a count of a serving run is negative: " + std::to_string(value));
  for (int limb = 0; limb < kServingLimbs; ++limb)
    limbs[limb] = static_cast<std::int32_t>((value >> (kLimbBits * limb)) & kLimbMask);
}

std::int64_t read_limbs(const std::int32_t* limbs) {
  std::int64_t value = 0;
  for (int limb = 0; limb < kServingLimbs; ++limb) value |= std::int64_t{limbs[limb]} << (kLimbBits * limb);
  return value;
}

// Every count of a run but its clock, in the order of the tensor.
template <class Run, class Body>
void for_each_count(Run& run, const Body& body) {
  auto& ledger = run.ledger;
  for (auto* count : {&ledger.slots,
                      &ledger.steps,
                      &ledger.producing,
                      &ledger.prefilling,
                      &ledger.discarded,
                      &ledger.stalled,
                      &ledger.ended,
                      &ledger.blocked,
                      &ledger.idle,
                      &ledger.computed_tokens,
                      &ledger.recomputed_tokens,
                      &ledger.padding_tokens,
                      &ledger.reused_tokens,
                      &ledger.preemptions,
                      &ledger.peak_running,
                      &ledger.kv_token_steps,
                      &ledger.kv_taken_steps,
                      &ledger.kv_taken_peak,
                      &run.work.sampled,
                      &run.work.keys,
                      &run.work.pairs,
                      &run.times.end_ns,
                      &run.times.busy_ns,
                      &run.times.idle_ns,
                      &run.times.host_ns,
                      &run.times.roofline_ns,
                      &run.times.predicted_ns,
                      &run.times.second_ns})
    body(*count);
}

enum Place : std::uint8_t { outcome, reused, recomputed, preemptions };  // in a request's fields
constexpr std::int32_t kRefused = 0;
constexpr std::int32_t kCompleted = 1;

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(std::min<std::int64_t>(value, INT32_MAX)); }

}  // namespace

std::int64_t run_elements(const ServingProblem& problem) {
  std::int64_t outputs = 0;
  for (const KvRequest& request : served_requests(problem)) outputs += request.output;
  return kServingRequestsBegin + kServingRequestFields * problem.requests + kOutputFields * outputs;
}

void write_run(const ServingProblem& problem, const ServingRun& run, std::int32_t* elements) {
  const std::vector<KvRequest> requests = served_requests(problem);
  if (run.requests.size() != requests.size())
    throw std::invalid_argument("a run of " + std::to_string(requests.size()) + " requests must have as many, got " +
                                std::to_string(run.requests.size()));
  write_limbs(static_cast<std::int64_t>(run.clock), elements);
  std::int32_t* count = elements;
  for_each_count(run, [&](std::int64_t value) { write_limbs(value, count += kServingLimbs); });
  std::int32_t* fields = elements + kServingRequestsBegin;
  std::int32_t* at = fields + kServingRequestFields * std::ssize(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::optional<RequestRecord>& record = run.requests[i];
    const std::int64_t outputs = requests[i].output;
    if (record && (std::ssize(record->outputs) != outputs || std::ssize(record->token_ns) != outputs))
      throw std::invalid_argument("request " + std::to_string(i) + " must end with " + std::to_string(outputs) +
                                  " outputs, got " + std::to_string(record->outputs.size()));
    fields[outcome] = record ? kCompleted : kRefused;
    fields[reused] = record ? narrow(record->reused_tokens) : 0;
    fields[recomputed] = record ? narrow(record->recomputed_tokens) : 0;
    fields[preemptions] = record ? narrow(record->preemptions) : 0;
    fields += kServingRequestFields;
    for (std::int64_t j = 0; j < outputs; ++j, at += kOutputFields) {
      const auto output = static_cast<std::size_t>(j);
      *at = record ? record->outputs[output] : 0;
      write_limbs(record ? record->token_ns[output] : 0, at + 1);
    }
  }
}

ServingRun read_run(const ServingProblem& problem, const std::int32_t* elements) {
  ServingRun run;
  run.clock = static_cast<ServingClock>(read_limbs(elements));
  const std::int32_t* count = elements;
  for_each_count(run, [&](std::int64_t& value) { value = read_limbs(count += kServingLimbs); });
  const std::vector<KvRequest> requests = served_requests(problem);
  const std::int32_t* fields = elements + kServingRequestsBegin;
  const std::int32_t* at = fields + kServingRequestFields * std::ssize(requests);
  for (const KvRequest& request : requests) {
    if (fields[outcome] == kRefused) {
      run.requests.emplace_back();
      at += request.output * kOutputFields;
    } else {
      RequestRecord record{.id = request.id,
                           .arrival_ns = arrival_ns(request),
                           .prompt_tokens = request.prompt,
                           .max_new = request.output,
                           .reused_tokens = fields[reused],
                           .preemptions = fields[preemptions],
                           .recomputed_tokens = fields[recomputed]};
      for (std::int64_t j = 0; j < request.output; ++j, at += kOutputFields) {
        record.outputs.push_back(*at);
        record.token_ns.push_back(read_limbs(at + 1));
      }
      run.requests.emplace_back(std::move(record));
    }
    fields += kServingRequestFields;
  }
  return run;
}

}  // namespace inferometer
