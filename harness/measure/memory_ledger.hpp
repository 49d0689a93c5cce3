// Every allocation of a row, under its role, with the peak. Frees with the last owner.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "harness/measure/device.hpp"

namespace inferometer {

class MemoryLedger : public Allocator {
 public:
  // `limit_bytes`: most that may be held at once; past it allocate throws OutOfMemory. The device outlives the ledger
  // and every allocation.
  MemoryLedger(Device& device, std::size_t limit_bytes);

  // Roles: "inputs", "outputs", "workspace", "weights", "kv_pool"; any other name in snake_case is kept as it is, for
  // results call its sum NAME_bytes. Throws std::invalid_argument for a name that is not.
  std::shared_ptr<void> allocate(std::size_t bytes, std::string_view role) override;

  std::size_t held_bytes() const;
  std::size_t peak_bytes() const;
  std::map<std::string, std::size_t> peak_by_role() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the deleters
};

}  // namespace inferometer
