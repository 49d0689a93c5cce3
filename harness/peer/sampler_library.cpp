// The C face of the sampler: no exception crosses it.
#include <memory>
#include <stdexcept>
#include <string>

#include "harness/measure/device.hpp"
#include "harness/peer/sampler.h"
#include "harness/results/record_json.hpp"

struct inferometer_sampler {
  std::unique_ptr<inferometer::Device> device;
  std::string answer;
};

namespace {

thread_local std::string last_error;

// nullptr, with the sentence kept, where `work` throws.
template <class Work>
auto guarded(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "the launch threw something that is no std::exception";
  }
  return nullptr;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) inferometer_sampler* inferometer_sampler_open(int gpu) {
  return guarded([&]() -> inferometer_sampler* {
    auto sampler = std::make_unique<inferometer_sampler>();
    sampler->device = gpu < 0 ? inferometer::make_cpu_device(0) : inferometer::make_gpu_device(gpu, last_error);
    return sampler->device ? sampler.release() : nullptr;
  });
}

__attribute__((visibility("default"))) void* inferometer_sampler_stream(inferometer_sampler* sampler) {
  return sampler->device->launch().stream;
}

__attribute__((visibility("default"))) const char* inferometer_sampler_time(inferometer_sampler* sampler,
                                                                            inferometer_launch launch, void* context,
                                                                            int sets, const char* measure) {
  return guarded([&]() -> const char* {
    using namespace inferometer;
    const Device::Run run = [&](int set, const Launch&) {
      if (launch(context, set) != 0) throw std::runtime_error("the launch failed");
    };
    const Timing timing = sampler->device->time(run, sets, measure_from_json(Json::parse(measure)));
    Json answer = {{"type", "timed"}, {"timing", timing_json(timing)}, {"suspect", or_null(timing.suspect_reason)}};
    null_non_finite(answer);
    sampler->answer = to_line(answer);
    return sampler->answer.c_str();
  });
}

__attribute__((visibility("default"))) const char* inferometer_sampler_error(void) { return last_error.c_str(); }

__attribute__((visibility("default"))) void inferometer_sampler_close(inferometer_sampler* sampler) { delete sampler; }

}  // extern "C"
