// Kernels whose blocks wait for each other, one after the other on a device.
//
// Two of them beside each other could each hold multiprocessors that blocks of the other need, and wait for ever. The
// launch is cooperative, but the documentation promises nothing about two such kernels of two streams. Turns are those
// of a process.
#pragma once

#include <mutex>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

// While it lives, launches (or a graph of them) are queued on `stream` of the current device: they come after those of
// all turns before, whatever their streams. A captured turn would order a graph's launches once, when it is made, and
// none of its runs: each run takes a turn of its own. Throws std::logic_error where `stream` is being captured, and
// CudaError.
class ChainTurn {
 public:
  explicit ChainTurn(Stream stream);
  ~ChainTurn();
  ChainTurn(const ChainTurn&) = delete;
  ChainTurn& operator=(const ChainTurn&) = delete;

 private:
  struct Device;
  static Device& current_device();

  Device& device_;
  std::unique_lock<std::mutex> lock_;
  Stream stream_;
};

}  // namespace inferometer::decoder
