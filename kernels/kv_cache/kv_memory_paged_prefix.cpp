// kv_memory / cpu.paged_prefix: as cpu.paged, and blocks of equal prompt beginnings are shared and kept for reuse.
#include <cstddef>
#include <span>

#include "harness/operator/variant.hpp"
#include "kernels/kv_cache/kv_memory_paged.hpp"

namespace inferometer {
std::optional<KvRoom> PagedPrefixPlacement::admit(const KvRequest& request, std::int64_t tokens, bool alone) {
  make_tokens(request, 0, tokens, tokens_);
  const std::int64_t reused = pool_.submit(request.id, tokens_, request.prompt + request.output - tokens);
  // Blocks that were cached are the request's by now, and no longer available.
  if (!may_admit(pool_.blocks_to_append(request.id, tokens - reused), alone)) {
    pool_.abort(request.id);
    return std::nullopt;
  }
  pool_.append(request.id, std::span<const TokenId>(tokens_).subspan(static_cast<std::size_t>(reused)));
  // A look at the next token: with its append the pool offers the blocks of the prompt to others.
  return KvRoom{.capacity = capacity_of(request), .next_look = tokens + 1, .reused = reused};
}

std::optional<KvRoom> PagedPrefixPlacement::extend(const KvRequest& request, std::int64_t tokens) {
  const bool offers_prompt = pool_.length(request.id) == tokens - 1;  // the first look; with blocks of 1 every look
  append_up_to(request, tokens - 1);
  if (pool_.blocks_to_append(request.id, 1) > pool_.available_blocks()) return std::nullopt;
  append_up_to(request, tokens);  // by itself: it offers what the tokens before it have filled
  if (offers_prompt) ++version_;
  const std::int64_t capacity = capacity_of(request);
  return KvRoom{.capacity = capacity, .next_look = capacity + 1};
}

void PagedPrefixPlacement::release(const KvRequest& request, std::int64_t tokens) {
  append_up_to(request, tokens);
  PagedPlacement::release(request, tokens);
}

void PagedPrefixPlacement::append_up_to(const KvRequest& request, std::int64_t tokens) {
  make_tokens(request, pool_.length(request.id), tokens, tokens_);
  pool_.append(request.id, tokens_);
}

namespace {

void run(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  PagedPrefixPlacement policy(problem);
  simulate(problem, policy, tensors);
}

const RegisterVariant<KvMemory> registered{{
    .name = "cpu.paged_prefix",
    .summary = "paged, and full blocks of equal prompt beginnings are shared and kept for reuse",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
