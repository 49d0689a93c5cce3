#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/operator/nearest_word.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/synthetic.hpp"
#include "reference/kv_memory/trace_file.hpp"

namespace inferometer {
namespace {

// The first so many requests of a source.
class FirstRequests : public RequestSource {
 public:
  FirstRequests(std::unique_ptr<RequestSource> source, std::int64_t count) : source_(std::move(source)), left_(count) {}
  bool next(KvRequest& request) override { return left_-- > 0 && source_->next(request); }

 private:
  std::unique_ptr<RequestSource> source_;
  std::int64_t left_;
};

std::unique_ptr<RequestSource> open_all(const KvMemoryProblem& p) {
  const std::string_view trace = p.trace;
  const bool needs_arrivals = p.arrivals == "trace";
  if (trace.ends_with(".csv")) return open_csv_trace(p.trace, needs_arrivals);
  if (trace.ends_with(".jsonl")) return open_mooncake_trace(p.trace, needs_arrivals);
  if (is_synthetic(trace)) return make_synthetic(trace, p.max_length, static_cast<std::uint64_t>(p.trace_seed));
  throw TraceError("trace must be a .csv or .jsonl file, or one of " + joined(synthetic_names()) + ", got '" + p.trace +
                   "'");
}

}  // namespace

std::unique_ptr<RequestSource> open_requests(const KvMemoryProblem& problem) {
  std::unique_ptr<RequestSource> source = open_all(problem);
  if (problem.requests == 0) return source;
  return std::make_unique<FirstRequests>(std::move(source), problem.requests);
}

std::int64_t count_requests(const KvMemoryProblem& problem, std::int64_t most) {
  std::ifstream file(problem.trace, std::ios::binary);
  std::vector<char> buffer(std::size_t{1} << 16);
  std::int64_t lines = problem.trace.ends_with(".csv") ? -1 : 0;  // its header
  bool blank = true;
  while (lines < most && file.read(buffer.data(), std::ssize(buffer)).gcount() > 0) {
    for (const char c : std::span(buffer).first(static_cast<std::size_t>(file.gcount()))) {
      if (c == '\n' && !blank) ++lines;
      blank = c == '\n' || (blank && c == '\r');
    }
  }
  return std::min(most, blank ? lines : lines + 1);
}

}  // namespace inferometer
