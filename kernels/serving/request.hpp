// A request to a serving engine, and what became of it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"

namespace inferometer {

struct ServingRequest {
  SequenceId id = 0;                 // free to be used again after the request's end
  std::int64_t arrival_ns = 0;       // planned; of the replay's clock
  std::vector<TokenId> prompt = {};  // at least one token
  std::int64_t max_new = 0;          // tokens to produce, exactly: none ends it earlier
};

enum class RequestOutcome : std::uint8_t { completed, aborted };

struct RequestRecord {
  SequenceId id = 0;
  std::int64_t arrival_ns = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t max_new = 0;
  RequestOutcome outcome = RequestOutcome::completed;
  std::vector<TokenId> outputs = {};
  std::vector<std::int64_t> token_ns = {};  // when each output was there
  std::int64_t reused_tokens = 0;           // of the prompt, found in the cache when it was first admitted
  std::int64_t preemptions = 0;             // times it gave up its blocks
  std::int64_t recomputed_tokens = 0;       // computed again after that
  bool operator==(const RequestRecord&) const = default;
};

}  // namespace inferometer
