// The paged policies of kv_memory: requests in the block pool that serves real kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"
#include "reference/kv_memory/problem.hpp"

namespace inferometer {

// Blocks are taken as tokens come. A request is admitted when its tokens find room and so many blocks are left as the
// watermark says: without some to grow into, one that is admitted would soon be preempted, or preempt another.
class PagedPlacement : public KvPlacement {
 public:
  PagedPlacement(const KvMemoryProblem& problem, bool prefix_reuse);

  bool can_hold(const KvRequest& request) const override;
  std::optional<KvRoom> admit(const KvRequest& request, std::int64_t tokens, bool alone) override;
  std::optional<KvRoom> extend(const KvRequest& request, std::int64_t tokens) override;
  void release(const KvRequest& request, std::int64_t tokens) override;
  KvPoolState state() const override;
  std::int64_t version() const override { return version_; }

 protected:
  // Whether so many blocks may be taken for a request that is to be admitted.
  bool may_admit(std::int64_t new_blocks, bool alone) const;
  std::int64_t capacity_of(const KvRequest& request) const;

  BlockPool pool_;
  std::int64_t version_ = 0;

 private:
  std::int64_t cut_off_slots_;
  std::int64_t watermark_blocks_;
};

// The same, and the full blocks of a prompt that a running or ended request holds already are used again. The pool
// compares tokens, so a trace that says which prompts agree is given tokens that agree in the same way.
class PagedPrefixPlacement : public PagedPlacement {
 public:
  explicit PagedPrefixPlacement(const KvMemoryProblem& problem) : PagedPlacement(problem, true) {}

  std::optional<KvRoom> admit(const KvRequest& request, std::int64_t tokens, bool alone) override;
  std::optional<KvRoom> extend(const KvRequest& request, std::int64_t tokens) override;
  void release(const KvRequest& request, std::int64_t tokens) override;

 private:
  // Hands the pool what it has not been told yet of the first `tokens` tokens.
  void append_up_to(const KvRequest& request, std::int64_t tokens);

  std::vector<TokenId> tokens_;  // of the request at hand
};

}  // namespace inferometer
