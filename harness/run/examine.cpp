#include "harness/run/examine.hpp"

namespace inferometer {

CheckedCache checked_cache(Device& device, CacheCheckOf check_of, const CacheCheckEffort& effort) {
  try {
    return {.check = check_of(device, effort), .absent = {}};
  } catch (const OutOfMemory& error) {
    return {.check = std::nullopt, .absent = error.what()};
  }
}

namespace {

// Noise first, on a rested device; the ceilings end with what draws the most power.
Examination examine(Device& device, CacheCheckOf check_of) {
  Examination measured;
  measured.noise = device.measure_noise();
  const CheckedCache cache = checked_cache(device, check_of, kThoroughCheck);
  measured.cache = cache.check;
  measured.cache_absent = cache.absent;
  measured.ceilings = device.measure_ceilings();
  return measured;
}

}  // namespace

Diagnosis examine_machine(int gpu_ordinal) {
  Diagnosis diagnosis;
  diagnosis.host = read_host_info();
  diagnosis.host_state = read_host_state();
  diagnosis.gpu_at_rest = read_gpu_state(gpu_ordinal);
  const std::unique_ptr<Device> host = make_cpu_device(0);
  diagnosis.threads_used = host->launch().threads;
  diagnosis.cpu = examine(*host, &check_cpu_cache);
  const std::unique_ptr<Device> gpu = make_gpu_device(gpu_ordinal, diagnosis.gpu_absent);
  if (gpu == nullptr) return diagnosis;
  diagnosis.gpu = gpu->gpu();
  diagnosis.gpu_measured = examine(*gpu, &check_gpu_cache);
  diagnosis.gpu_after_ceilings = read_gpu_state(gpu_ordinal);
  diagnosis.event_cost = measure_event_cost(*gpu, diagnosis.event_cost_absent);
  return diagnosis;
}

}  // namespace inferometer
