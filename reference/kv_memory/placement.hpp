// A policy for the memory of KV caches, as simulate() drives it.
#pragma once

#include <cstdint>
#include <optional>

#include "reference/kv_memory/request.hpp"

namespace inferometer {

// The slots of one running request.
struct KvRoom {
  std::int64_t capacity = 0;   // slots in its name; a shared one counts for each that shares it
  std::int64_t next_look = 0;  // extend() is to be called when the request comes to hold so many tokens, at most
                               // capacity + 1
  std::int64_t reused = 0;     // tokens that were there when it was admitted
};

// Slots of the pool.
struct KvPoolState {
  std::int64_t taken = 0;    // by running requests; a shared one once
  std::int64_t cached = 0;   // nobody's, kept for prompts to come
  std::int64_t cut_off = 0;  // free for ever: less than a block
  bool contiguous = false;   // free slots serve the request whose turn it is only if enough lie together
};

class KvPlacement {
 public:
  virtual ~KvPlacement() = default;

  // Whether the request could run alone.
  virtual bool can_hold(const KvRequest& request) const = 0;

  // Takes what the policy takes for a request that starts with `tokens` tokens: its prompt, and what it had generated
  // before it was preempted. `alone`: no other runs, so that waiting would be for ever. Nothing when there is no room.
  virtual std::optional<KvRoom> admit(const KvRequest& request, std::int64_t tokens, bool alone) = 0;

  // The running request comes to hold `tokens` tokens, one more than after the step before. Nothing when there is no
  // slot for the last.
  virtual std::optional<KvRoom> extend(const KvRequest& request, std::int64_t tokens) = 0;

  // The request has ended or is preempted, with `tokens` computed tokens.
  virtual void release(const KvRequest& request, std::int64_t tokens) = 0;

  virtual KvPoolState state() const = 0;

  // Has changed whenever a request that could not be admitted might be admitted now.
  virtual std::int64_t version() const = 0;
};

}  // namespace inferometer
