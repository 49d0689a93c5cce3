// Runs that measure on the same device at the same time, each unknown to the other, spoil each other's times. A run
// holds a lock of its device's name; who finds it taken can say so.
#pragma once

#include <string>

#include "harness/run/lines.hpp"

namespace inferometer {

class DeviceLock {
 public:
  // Takes the lock of `device` ("cpu", or the uuid of a GPU) in the folder for temporary files, if it is free. A lock
  // that can be neither taken nor found taken, for want of permission, counts as free: a warning is no reason to stop.
  explicit DeviceLock(const std::string& device);

  bool taken_by_another() const { return taken_by_another_; }

 private:
  FileDescriptor file_;  // its end releases the lock, be it by a crash
  bool taken_by_another_ = false;
};

}  // namespace inferometer
