// What the readers of trace files have in common: line by line, an error that says where, arrivals in order.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

#include "reference/kv_memory/request.hpp"

namespace inferometer {

class TraceFile : public RequestSource {
 public:
  // Throws TraceError when there is no such file. `needs_arrivals`: rows must say when, and in order.
  TraceFile(const std::string& path, bool needs_arrivals);

  bool next(KvRequest& request) final;

 protected:
  // Fills in all but the id, the arrival in ms of a clock of the trace's own.
  virtual void read_row(std::string_view line, KvRequest& request) = 0;

  bool read_line(std::string_view& line);  // without its end (LF or CRLF); false at the end of the file
  bool needs_arrivals() const { return needs_arrivals_; }
  // "a.csv:17: expected ..., got ..."
  [[noreturn]] void refuse(const std::string& expected, std::string_view got) const;
  static constexpr std::int64_t kLongest = 1'000'000'000;  // tokens: sums over a billion rows stay below 2^63
  // An integer from 0 to `largest`; `what` names it.
  std::int64_t read_count(std::string_view text, const std::string& what, std::int64_t largest = kLongest) const;

 private:
  std::string path_;
  bool needs_arrivals_;
  std::ifstream file_;
  std::unique_ptr<char[]> buffer_;  // of one line
  std::int64_t line_ = 0;           // the last read, from 1
  std::int64_t rows_ = 0;
  double first_arrival_ms_ = 0;
  double last_arrival_ms_ = 0;
};

// By the extension of the path: .csv or .jsonl.
std::unique_ptr<RequestSource> open_csv_trace(const std::string& path, bool needs_arrivals);
std::unique_ptr<RequestSource> open_mooncake_trace(const std::string& path, bool needs_arrivals);

}  // namespace inferometer
