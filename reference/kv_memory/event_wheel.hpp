// Which running requests need a look in which step: a ring of the steps ahead, so that a step in which nothing happens
// costs nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace inferometer {

struct Event {
  std::int64_t id = 0;        // of the request; events of a step are dealt with in its order
  std::int64_t admitted = 0;  // the step in which it was admitted; an event of an earlier admission is void
  std::size_t place = 0;      // of the request among the running ones
};

class EventWheel {
 public:
  static constexpr std::int64_t kHorizon = 1024;  // steps; a later event looks in on the way

  EventWheel() : due_(static_cast<std::size_t>(kHorizon)) {}

  // `step` is after `now`.
  void add(std::int64_t now, std::int64_t step, const Event& event) {
    bucket(std::min(step, now + kHorizon - 1)).push_back(event);
  }

  // The events of this step, by id. Valid until `step + kHorizon - 1`.
  const std::vector<Event>& due(std::int64_t step) {
    std::vector<Event>& events = bucket(step);
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.id < b.id; });
    return events;
  }
  void clear(std::int64_t step) { bucket(step).clear(); }

 private:
  std::vector<Event>& bucket(std::int64_t step) { return due_[static_cast<std::size_t>(step % kHorizon)]; }

  std::vector<std::vector<Event>> due_;
};

}  // namespace inferometer
