// A request to a serving engine.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"
#include "reference/serving/problem.hpp"  // RequestRecord

namespace inferometer {

struct ServingRequest {
  SequenceId id = 0;                 // free to be used again after the request's end
  std::int64_t arrival_ns = 0;       // planned; of the replay's clock
  std::vector<TokenId> prompt = {};  // at least one token
  std::int64_t max_new = 0;          // tokens to produce, exactly: none ends it earlier
};

}  // namespace inferometer
