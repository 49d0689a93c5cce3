#include "harness/run/session.hpp"

#include <cstdlib>

#include "harness/operator/registry.hpp"
#include "harness/peer/peer_device.hpp"
#include "harness/peer/peer_registry.hpp"
#include "harness/run/examine.hpp"

namespace inferometer {

SessionConfig session_config(const Sweep& sweep, std::uint64_t seed, int gpu_ordinal) {
  SessionConfig config;
  config.row = {.seed = seed, .measure = sweep.measure, .limits = sweep.limits};
  config.gpu_ordinal = gpu_ordinal;
  for (const SweepRow& row : sweep.rows) {
    const Variant* variant = find_variant(row.operator_name, row.variant);
    if (variant == nullptr || !variant->not_built.empty()) continue;  // needs no device to say so
    (variant->on_gpu() ? config.gpu_rows : config.cpu_rows) = true;
  }
  return config;
}

Session::Session(const SessionConfig& config)
    : measures_host_(config.cpu_rows && !config.known),
      clears_(config.row.measure.cache == CacheMode::cold),
      host_(make_cpu_device(0)) {
  // Peers inherit it: their rows are set beside the ceilings of this GPU.
  setenv("INFEROMETER_GPU", std::to_string(config.gpu_ordinal).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  if (config.known) report_ = *config.known;
  report_.threads_used = host_->launch().threads;
  if (!config.known) {  // before the GPU is opened: this process is none of the others on it
    report_.at_start.host = read_host_state();
    if (config.gpu_rows) report_.at_start.gpu = read_gpu_state(config.gpu_ordinal);
  }
  report_.gpu_absent = "no row needs the GPU";
  if (config.gpu_rows) {
    report_.gpu_absent.clear();
    gpu_ = make_gpu_device(config.gpu_ordinal, report_.gpu_absent);
  }
  report_.gpu = gpu_ ? gpu_->gpu() : std::nullopt;
  if (gpu_ && !config.known) {
    report_.gpu_ceilings = gpu_->measure_ceilings();
    report_.gpu_after_ceilings = read_gpu_state(config.gpu_ordinal);
    report_.noise = gpu_->measure_noise();
    report_.gpu_cache = checked_cache(*gpu_, &check_gpu_cache, kQuickCheck);
  }
  runner_ = std::make_unique<RowRunner>(*host_, gpu_.get(), report_, config.row);
}

void Session::measure_host() {
  if (!measures_host_) return;
  report_.cpu_ceilings = host_->measure_ceilings();
  report_.cpu_noise = host_->measure_noise();
  if (!gpu_) report_.noise = *report_.cpu_noise;
  if (clears_) {
    report_.cpu_cache = checked_cache(*host_, &check_cpu_cache, kQuickCheck);
  } else {
    report_.cpu_cache.absent = "the rows are measured with a warm cache, which nothing clears";
  }
}

RowOutcome Session::run(const SweepRow& row, const PhaseCallback& phase) {
  Peer* peer = find_peer(row.operator_name, row.variant);
  if (peer == nullptr) return runner_->run(row, phase);
  PeerDevice device(*peer, *host_, report_);
  RowOutcome outcome = runner_->run(row, phase, &device);
  if (outcome.record.status != Status::unsupported) outcome.record.versions = peer->versions();
  return outcome;
}

}  // namespace inferometer
