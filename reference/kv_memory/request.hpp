// The requests of kv_memory, one after the other: from a trace file, or made from published statistics. No source ever
// holds more than the request it is at.
//
//   PATH.csv    a header and one request a line. Columns by name, in any order, others ignored: the prompt's tokens are
//               ContextTokens or num_prefill_tokens, the answer's GeneratedTokens or num_decode_tokens; TIMESTAMP
//               ("2023-11-16 18:15:46.6805900"), needed for arrivals by trace alone. The Azure LLM inference traces of
//               2023 (Patel et al., "Splitwise", ISCA 2024) and length lists of the arXiv summarization set.
//   PATH.jsonl  one object a line: "timestamp" (ms), "input_length", "output_length" and "hash_ids": one id for every
//               512 tokens of the prompt begun; equal ids mean equal tokens up to the end of that block. The Mooncake
//               traces (Qin et al., FAST 2025).
//   a name      a synthetic distribution (synthetic_names())
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace inferometer {

struct KvMemoryProblem;

inline constexpr std::int64_t kHashBlockTokens = 512;  // of the prompt behind one hash id

struct KvRequest {
  std::int64_t id = 0;                      // place in the trace, from 0
  double arrival_ms = 0;                    // since the first request of the trace
  std::int64_t prompt = 0;                  // tokens
  std::int64_t output = 0;                  // tokens
  std::vector<std::int64_t> hash_ids = {};  // of the prompt; empty: it shares nothing with any other

  // The last token is returned and never stored.
  std::int64_t stored() const { return prompt + output - 1; }
};

// Tokens begin, ..., end - 1 of a request's prompt and outputs: equal where their hash ids are, else all different.
void make_tokens(const KvRequest& request, std::int64_t begin, std::int64_t end, std::vector<std::int32_t>& tokens);

// A trace that cannot be read. what() names the file, the line, what was expected and what came.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RequestSource {
 public:
  virtual ~RequestSource() = default;
  // The next request, arrivals never decreasing; false at the end. Throws TraceError.
  virtual bool next(KvRequest& request) = 0;
};

// The requests of a problem, at most problem.requests of them. Throws TraceError when there is no such trace.
std::unique_ptr<RequestSource> open_requests(const KvMemoryProblem& problem);

// Requests of the problem's trace file, at most `most`: its lines are counted, not read.
std::int64_t count_requests(const KvMemoryProblem& problem, std::int64_t most);

std::vector<std::string> synthetic_names();

}  // namespace inferometer
