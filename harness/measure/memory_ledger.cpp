#include "harness/measure/memory_ledger.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>

namespace inferometer {
namespace {

bool is_snake_case(std::string_view name) {
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

}  // namespace

struct MemoryLedger::State {
  struct Amount {
    std::size_t held = 0;
    std::size_t peak = 0;

    void note_peak() { peak = std::max(peak, held); }
  };

  State(Device& device_, std::size_t limit_bytes_) : device(device_), limit_bytes(limit_bytes_) {}

  // Booked before the device is asked, so that two threads cannot pass the limit together.
  void book(std::size_t bytes, const std::string& role) {
    const std::lock_guard lock(mutex);
    const std::size_t left = limit_bytes - total.held;
    const std::string where =
        "memory ledger, " + role + " within the limit of " + std::to_string(limit_bytes) + " bytes";
    if (bytes > left) throw OutOfMemory(where, bytes, left);
    total.held += bytes;
    roles[role].held += bytes;
  }

  // Once the device has given the memory: a refused allocation is no peak.
  void confirm(const std::string& role) {
    const std::lock_guard lock(mutex);
    total.note_peak();
    roles[role].note_peak();
  }

  void unbook(std::size_t bytes, const std::string& role) {
    const std::lock_guard lock(mutex);
    total.held -= bytes;
    roles[role].held -= bytes;
  }

  Device& device;
  const std::size_t limit_bytes;
  mutable std::mutex mutex;
  Amount total;
  std::map<std::string, Amount> roles;
};

MemoryLedger::MemoryLedger(Device& device, std::size_t limit_bytes)
    : state_(std::make_shared<State>(device, limit_bytes)) {}

std::shared_ptr<void> MemoryLedger::allocate(std::size_t bytes, std::string_view role) {
  const std::string name(role);
  if (!is_snake_case(role))
    throw std::invalid_argument("memory ledger: a role is a name in snake_case, got '" + name + "'");
  state_->book(bytes, name);
  void* memory = nullptr;
  try {
    memory = state_->device.allocate(bytes);
  } catch (...) {
    state_->unbook(bytes, name);
    throw;
  }
  state_->confirm(name);
  return {memory, [state = state_, bytes, name](void* released) {
            state->device.release(released);
            state->unbook(bytes, name);
          }};
}

std::size_t MemoryLedger::held_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->total.held;
}

std::size_t MemoryLedger::peak_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->total.peak;
}

std::map<std::string, std::size_t> MemoryLedger::peak_by_role() const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::string, std::size_t> peaks;
  for (const auto& [role, amount] : state_->roles) peaks[role] = amount.peak;
  return peaks;
}

}  // namespace inferometer
