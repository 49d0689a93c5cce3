#include "harness/run/row_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <new>

#include "harness/judge/judge.hpp"
#include "harness/measure/nvtx.hpp"
#include "harness/measure/profiler.hpp"
#include "harness/operator/registry.hpp"
#include "harness/results/status.hpp"
#include "harness/run/rates.hpp"
#include "harness/run/row_record.hpp"

namespace inferometer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostSets = 64;
constexpr double kWarmUpSeconds = 0.25;  // a row whose launch takes longer is not launched for nothing
constexpr std::size_t kReferenceBytes = std::size_t{64} << 20;  // of the problems before the latest
constexpr double kShareOfMemory = 0.9;  // for further sets; the rest is left to libraries that allocate for themselves

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One phase of a row, for the supervisor and for profilers.
class Phase {
 public:
  Phase(const PhaseCallback& callback, std::string_view name) : range_(name) { callback(name); }

 private:
  NvtxRange range_;
};

std::size_t memory_limit(const Device& device, const std::optional<std::size_t>& limit) {
  return limit ? std::min(*limit, device.free_bytes()) : device.free_bytes();
}

std::size_t input_bytes(const std::vector<TensorSpec>& specs) {
  std::size_t bytes = 0;
  for (const TensorSpec& spec : specs)
    if (spec.role != Role::output) bytes += static_cast<std::size_t>(spec.bytes());
  return bytes;
}

// Before anything of the row is made: why what it must hold at once does not fit; empty where it does. `limit_name`:
// the setting that `limit_bytes` comes from, empty for what is free.
std::string no_room(const ResolvedRow& row, std::size_t limit_bytes, const std::string& limit_name) {
  const auto sum = [](std::size_t a, std::size_t b) { return a + std::min(b, SIZE_MAX - a); };
  std::size_t tensors = 0;
  for (const TensorSpec& spec : row.op->shapes(row.problem.get()))
    tensors = sum(tensors, static_cast<std::size_t>(spec.bytes()));
  const std::size_t workspace = row.variant->workspace_bytes(row.problem.get());
  const std::size_t bytes = sum(tensors, workspace);
  if (bytes <= limit_bytes) return {};
  const std::string room = std::to_string(limit_bytes);
  return "tensors of " + std::to_string(tensors) + " bytes and a workspace of " + std::to_string(workspace) +
         " bytes: out of memory: asked for " + std::to_string(bytes) + " bytes, " +
         (limit_name.empty() ? room + " bytes free" : "the limit " + limit_name + " is " + room + " bytes");
}

void note_memory(const MemoryLedger& ledger, Record& record) {
  record.memory_bytes = ledger.peak_by_role();
  record.memory_bytes["peak"] = ledger.peak_bytes();
}

// Empty: the samples tell how long a launch takes.
std::string too_uncertain(const IsolatedTiming& timing) {
  if (!timing.ci_half_width_ratio || *timing.ci_half_width_ratio <= 1) return {};  // too few samples have a flag
  return "the median of " + std::to_string(timing.samples) + " samples is uncertain by " +
         std::to_string(std::lround(100 * *timing.ci_half_width_ratio)) +
         " % of itself: other work took the processors, or the seconds allowed were too few";
}

// Drops what a row that failed may not show.
void fail(Record& record, Status status, const std::string& reason) {
  record.status = status;
  record.reason = reason;
  record.timing.reset();
  record.rates.reset();
  record.metrics.clear();
}

// Errors of asynchronous work surface once; a context that answers with an error again is beyond repair.
bool is_lost(Device& device) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      device.synchronize();
      return false;
    } catch (const std::exception&) {
      if (attempt == 1) return true;
    }
  }
  return true;
}

}  // namespace

RowRunner::RowRunner(Device& host, Device* gpu, const DeviceReport& report, Settings settings)
    : host_(host), gpu_(gpu), report_(report), settings_(settings) {}

RowOutcome RowRunner::run(const SweepRow& sweep_row, const PhaseCallback& phase, Device* stand_in) {
  RowOutcome outcome;
  Record& record = outcome.record;
  record = row_record(sweep_row);
  const NvtxRange range(record.operator_name + "/" + record.variant + "/" + record.id);
  Device* device = nullptr;
  std::optional<MemoryLedger> ledger;
  try {
    ResolvedRow row;
    row.op = find_operator(record.operator_name);
    row.variant = find_variant(record.operator_name, record.variant);
    if (row.op == nullptr || row.variant == nullptr)
      throw std::runtime_error("this program has no " + record.operator_name + "/" + record.variant);
    row.problem = row.op->parse(record.problem);
    record.problem = row.op->describe(row.problem.get());
    record.work = row.op->work(row.problem.get());
    if (const std::string reason = unsupported_reason(row); !reason.empty()) {
      fail(record, Status::unsupported, reason);
      return outcome;
    }
    device = row.variant->on_gpu() ? gpu_ : &host_;
    if (stand_in != nullptr) device = stand_in;
    const bool on_gpu = row.variant->on_gpu();
    const auto& limit = on_gpu ? settings_.limits.device_bytes : settings_.limits.host_bytes;
    const std::size_t limit_bytes = memory_limit(*device, limit);
    ledger.emplace(*device, limit_bytes);
    const char* const limit_name = on_gpu ? "limits.device_bytes" : "limits.host_bytes";
    if (const std::string reason = no_room(row, limit_bytes, limit == limit_bytes ? limit_name : ""); !reason.empty())
      fail(record, Status::out_of_memory, reason);
    else
      measure(row, *device, *ledger, phase, record);
  } catch (const OutOfMemory& error) {
    fail(record, Status::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    fail(record, Status::out_of_memory,
         "an allocation of host memory failed; the machine has " + std::to_string(host_.free_bytes()) +
             " bytes free, of which `ulimit -v` may leave this process fewer");
  } catch (const std::exception& error) {
    fail(record, Status::error, error.what());
  } catch (...) {
    fail(record, Status::error, "the variant threw something that is no std::exception");
  }
  if (ledger && record.memory_bytes.empty()) note_memory(*ledger, record);
  outcome.profiled = settings_.measure.kernel_times && device != nullptr && device == gpu_;
  if (device != nullptr && !has_timing(record.status) && is_lost(*device)) {
    fail(record, Status::crashed, record.reason);
    outcome.device_lost = true;
  }
  return outcome;
}

std::string RowRunner::unsupported_reason(const ResolvedRow& row) const {
  const Variant& variant = *row.variant;
  if (!variant.not_built.empty()) return variant.not_built;
  if (const auto sentence = variant.unsupported(row.problem.get())) return *sentence;
  if (!variant.on_gpu()) return {};
  if (gpu_ == nullptr) return report_.gpu_absent.empty() ? "no GPU was opened" : report_.gpu_absent;
  if (const int sm = report_.gpu ? report_.gpu->sm : 0; sm < variant.min_sm)
    return "needs compute capability " + std::to_string(variant.min_sm / 10) + "." +
           std::to_string(variant.min_sm % 10) + " or newer, this GPU has " + std::to_string(sm / 10) + "." +
           std::to_string(sm % 10);
  return {};
}

void RowRunner::measure(ResolvedRow& row, Device& device, MemoryLedger& ledger, const PhaseCallback& phase,
                        Record& record) {
  std::shared_ptr<void> workspace_memory;
  std::span<std::byte> workspace;
  std::vector<std::unique_ptr<TensorSet>> sets;
  {
    const Phase prepare(phase, "prepare");
    row.specs = row.op->tensors(row.problem.get());
    if (const std::size_t bytes = row.variant->workspace_bytes(row.problem.get()); bytes > 0) {
      workspace_memory = ledger.allocate(bytes, "workspace");
      device.set_zero(workspace_memory.get(), bytes);
      workspace = {static_cast<std::byte*>(workspace_memory.get()), bytes};
    }
    sets.push_back(std::make_unique<TensorSet>(row, device, ledger, settings_.seed, workspace));
    device.synchronize();
  }
  const std::size_t set_bytes = ledger.held_bytes() - workspace.size();
  double launch_seconds = 0;
  {
    const Phase checking(phase, "check");
    launch_seconds = check(row, device, *sets.front(), record);
    note_memory(ledger, record);  // before further sets: what this row needs, not what timing adds
    if (record.status != Status::ok) return;
  }
  {
    const Phase warm_up(phase, "warm-up");
    if (launch_seconds <= kWarmUpSeconds) {  // the check launched this set already
      sets.front()->launch(device.launch());
      device.synchronize();
    }
  }
  {
    const Phase measuring(phase, "measure");
    time(row, device, sets, rotating_sets(row, device, ledger, set_bytes, workspace, sets), launch_seconds, record);
  }
  {
    const Phase checking(phase, "check");
    check(row, device, *sets.back(), record);  // the last set: also finds state that belongs to another set
    record.check->repeated_after_timing = true;
    if (record.status != Status::ok) return fail(record, record.status, "after timing: " + record.reason);
  }
  if (record.timing) add_rates(row.variant->on_gpu(), record);
}

void RowRunner::time(const ResolvedRow& row, Device& device, const std::vector<std::unique_ptr<TensorSet>>& sets,
                     const InputSets& input_sets, double launched_seconds, Record& record) const {
  if (settings_.profiled_launches > 0) {
    const ProfiledPart profiled(row.variant->on_gpu());
    for (int i = 0; i < settings_.profiled_launches; ++i) sets.front()->launch(device.launch());
    device.synchronize();
    return;
  }
  const auto launch = [&](int set, const Launch& own) { sets[static_cast<std::size_t>(set)]->launch(own); };
  record.timing = device.time(launch, input_sets, settings_.measure, launched_seconds);
  device.synchronize();
  const bool rotates_out = sets.size() * input_bytes(row.specs) > 2 * device.cache_bytes();
  if (record.timing->amortized)
    record.timing->amortized->cache =
        settings_.measure.cache == CacheMode::cold && rotates_out ? CacheMode::cold : CacheMode::warm;
  note_cache(row.variant->on_gpu(), *record.timing);
}

// Flags what the check of this device's cache says of a cold time.
void RowRunner::note_cache(bool on_gpu, Timing& timing) const {
  if (settings_.measure.cache == CacheMode::warm) return;
  const bool rotates = timing.amortized && timing.amortized->cache == CacheMode::cold;
  for (const ExaminedDevice& one : examined_devices(report_)) {
    if (one.is_gpu != on_gpu) continue;
    for (std::string& flag : cold_flags(judge_cache(one.measured), rotates))
      timing.isolated.flags.push_back(std::move(flag));
  }
}

double RowRunner::check(const ResolvedRow& row, Device& device, TensorSet& set, Record& record) {
  set.poison_outputs();
  device.synchronize();
  const auto start = Clock::now();
  set.launch(device.launch());
  device.synchronize();
  const double seconds = seconds_since(start);

  MemoryLedger host(host_, memory_limit(host_, settings_.limits.host_bytes));
  const std::vector<std::shared_ptr<void>> outputs = set.read_outputs(host);
  std::vector<OutputView> views;
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    pointers.push_back(outputs[i].get());
    if (row.specs[i].role == Role::output) views.push_back({&row.specs[i], outputs[i].get()});
  }
  const Inputs inputs(row.specs, settings_.seed);
  const auto tolerance = [&](std::string_view tensor) { return row.op->tolerance(row.problem.get(), tensor); };
  record.check = judge(views, expected(row, inputs), tolerance, row.op->reference, report_.threads_used);
  if (record.check->passed) {
    record.check->reason = row.op->audit(row.problem.get(), row.variant->name, pointers);
    record.check->passed = record.check->reason.empty();
  }
  if (!record.check->passed) {
    fail(record, Status::incorrect, record.check->reason);
  } else {
    record.status = Status::ok;
    record.metrics = row.op->metrics(row.problem.get(), inputs, pointers, report_.threads_used);
  }
  return seconds;
}

InputSets RowRunner::rotating_sets(const ResolvedRow& row, Device& device, MemoryLedger& ledger, std::size_t set_bytes,
                                   std::span<std::byte> workspace,
                                   std::vector<std::unique_ptr<TensorSet>>& sets) const {
  if (settings_.measure.cache == CacheMode::warm || settings_.profiled_launches > 0) return {};
  const std::size_t rotated = std::max<std::size_t>(input_bytes(row.specs), 1);
  const std::size_t wanted = std::min(2 * device.cache_bytes() / rotated + 1, kMostSets);
  const auto budget = static_cast<std::size_t>(
      kShareOfMemory * static_cast<double>(memory_limit(device, row.variant->on_gpu() ? settings_.limits.device_bytes
                                                                                      : settings_.limits.host_bytes)));
  const std::size_t count = std::min(wanted, 1 + budget / std::max<std::size_t>(set_bytes, 1));
  const auto make = [this, &row, &device, &ledger, workspace, &sets, count] {
    // The same seed: any set's outputs can be judged with the same expected values.
    while (sets.size() < count) {
      try {
        sets.push_back(std::make_unique<TensorSet>(row, device, ledger, settings_.seed, workspace));
      } catch (const OutOfMemory&) {
        break;  // fewer sets measure too; the amortized figure says how many, and that they fit the cache
      }
    }
    device.synchronize();
    return static_cast<int>(sets.size());
  };
  return {.count = static_cast<int>(count), .make = make};
}

void RowRunner::add_rates(bool on_gpu, Record& record) const {
  const Ceilings& ceilings = on_gpu ? report_.gpu_ceilings : report_.cpu_ceilings;
  const Timing& timing = *record.timing;
  const CacheMode cache = headline_cache(timing);
  record.rates = rates_of(*record.work, timing.headline_ns, ceilings, on_gpu, cache);
  std::string suspicion = timing.suspect ? timing.suspect_reason : std::string();
  if (suspicion.empty()) suspicion = too_uncertain(timing.isolated);
  if (suspicion.empty()) suspicion = faster_than_possible(*record.rates);
  if (timing.suspect || !suspicion.empty()) {
    record.status = Status::suspect;
    record.reason = suspicion.empty() ? "the clock cannot see this row" : suspicion;
  }
}

const std::vector<ExpectedSpan>& RowRunner::expected(const ResolvedRow& row, const Inputs& inputs) {
  std::string key = row.op->name + " " + to_string(row.op->describe(row.problem.get()));
  const auto known =
      std::find_if(references_.begin(), references_.end(), [&](const Reference& one) { return one.key == key; });
  if (known != references_.end()) return known->spans;
  Reference reference{.key = std::move(key),
                      .spans = row.op->expect(row.problem.get(), inputs, settings_.seed, report_.threads_used)};
  reference.bytes = sizeof reference + reference.key.size();  // most of it where a problem is small
  for (const ExpectedSpan& span : reference.spans) reference.bytes += sizeof span + span.values.size() * sizeof(double);
  std::size_t earlier = 0;
  for (const Reference& one : references_) earlier += one.bytes;
  for (; earlier > kReferenceBytes; references_.pop_front()) earlier -= references_.front().bytes;
  references_.push_back(std::move(reference));
  return references_.back().spans;
}

}  // namespace inferometer
