// kv_memory / cpu.paged: blocks of the pool as tokens come, none shared.
//
// The pool is told of tokens a block at a time, when the next block is needed: it makes no difference to which blocks
// are taken, and a million requests have 20 times as many tokens as blocks.
#include "kernels/kv_cache/kv_memory_paged.hpp"

#include "harness/operator/variant.hpp"

namespace inferometer {

PagedPlacement::PagedPlacement(const KvMemoryProblem& problem, bool prefix_reuse)
    : pool_({.num_blocks = static_cast<std::int32_t>(problem.pool_slots() / problem.block_size),
             .block_size = static_cast<std::int32_t>(problem.block_size),
             .prefix_reuse = prefix_reuse}),
      cut_off_slots_(problem.pool_slots() % problem.block_size),
      watermark_blocks_(static_cast<std::int64_t>(problem.watermark_ratio * pool_.num_blocks())) {}

bool PagedPlacement::can_hold(const KvRequest& request) const {
  return pool_.blocks_of(request.stored()) <= pool_.num_blocks();
}

std::optional<KvRoom> PagedPlacement::admit(const KvRequest& request, std::int64_t tokens, bool alone) {
  if (!may_admit(pool_.blocks_of(tokens), alone)) return std::nullopt;
  pool_.submit(request.id, tokens, request.prompt + request.output - tokens);
  pool_.append(request.id, tokens);
  const std::int64_t capacity = capacity_of(request);
  return KvRoom{.capacity = capacity, .next_look = capacity + 1};
}

std::optional<KvRoom> PagedPlacement::extend(const KvRequest& request, std::int64_t tokens) {
  if (pool_.available_blocks() == 0) return std::nullopt;
  pool_.append(request.id, tokens - pool_.length(request.id));
  const std::int64_t capacity = capacity_of(request);
  return KvRoom{.capacity = capacity, .next_look = capacity + 1};
}

void PagedPlacement::release(const KvRequest& request, std::int64_t) {
  pool_.free(request.id);
  ++version_;
}

KvPoolState PagedPlacement::state() const {
  const BlockPoolUsage usage = pool_.usage();
  return {.taken = usage.owned_blocks * pool_.block_size(),
          .cached = usage.cached_blocks * pool_.block_size(),
          .cut_off = cut_off_slots_};
}

bool PagedPlacement::may_admit(std::int64_t new_blocks, bool alone) const {
  return new_blocks + (alone ? 0 : watermark_blocks_) <= pool_.available_blocks();
}

std::int64_t PagedPlacement::capacity_of(const KvRequest& request) const {
  return std::ssize(pool_.table(request.id)) * pool_.block_size();
}

namespace {

void run(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  PagedPlacement policy(problem, false);
  simulate(problem, policy, tensors);
}

const RegisterVariant<KvMemory> registered{{
    .name = "cpu.paged",
    .summary = "blocks of block_size slots, taken as tokens come",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
