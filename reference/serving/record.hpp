// What became of a request that was served.
#pragma once

#include <cstdint>
#include <vector>

namespace inferometer {

enum class RequestOutcome : std::uint8_t { completed, aborted };

struct RequestRecord {
  std::int64_t id = 0;
  std::int64_t arrival_ns = 0;  // planned
  std::int64_t prompt_tokens = 0;
  std::int64_t max_new = 0;
  RequestOutcome outcome = RequestOutcome::completed;
  std::vector<std::int32_t> outputs = {};
  std::vector<std::int64_t> token_ns = {};  // when each output was there
  std::int64_t reused_tokens = 0;           // of the prompt, found in the cache when it was first admitted
  std::int64_t preemptions = 0;             // times it gave up its blocks
  std::int64_t recomputed_tokens = 0;       // computed again after that
  bool operator==(const RequestRecord&) const = default;
};

}  // namespace inferometer
