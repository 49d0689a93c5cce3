// The GPU that tests run on.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "harness/measure/device.hpp"

namespace inferometer::test {

inline std::unique_ptr<Device> gpu() {
  std::string reason;
  std::unique_ptr<Device> device = make_gpu_device(0, reason);
  if (device == nullptr) throw std::runtime_error(reason);
  return device;
}

}  // namespace inferometer::test
