#include "reference/kv_memory/trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace inferometer {
namespace {

constexpr std::int64_t kLongestLine = std::int64_t{1} << 20;  // bytes; a prompt of a million tokens has 2,000 hash ids
constexpr std::size_t kShownText = 60;

}  // namespace

TraceFile::TraceFile(const std::string& path, bool needs_arrivals)
    : path_(path),
      needs_arrivals_(needs_arrivals),
      file_(path),
      buffer_(std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(kLongestLine))) {
  if (!file_) throw TraceError(path + ": cannot be opened: " + std::strerror(errno));
}

bool TraceFile::next(KvRequest& request) {
  std::string_view line;
  do {
    if (!read_line(line)) {
      if (rows_ == 0) refuse("at least one request", "the end of the file");
      return false;
    }
  } while (line.empty());
  request = {};
  read_row(line, request);
  if (rows_ == 0) first_arrival_ms_ = last_arrival_ms_ = request.arrival_ms;
  if (needs_arrivals_ && request.arrival_ms < last_arrival_ms_)
    refuse("a timestamp not before that of the row above", line);
  last_arrival_ms_ = request.arrival_ms;
  request.arrival_ms -= first_arrival_ms_;
  request.id = rows_++;
  return true;
}

bool TraceFile::read_line(std::string_view& line) {
  file_.getline(buffer_.get(), kLongestLine);
  if (file_.bad()) throw TraceError(path_ + ": cannot be read behind line " + std::to_string(line_));
  if (file_.eof() && file_.gcount() == 0) return false;
  ++line_;
  if (file_.fail()) refuse("a line of less than " + std::to_string(kLongestLine) + " bytes", "a longer one");
  line = std::string_view(buffer_.get(), static_cast<std::size_t>(file_.gcount() - (file_.eof() ? 0 : 1)));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

void TraceFile::refuse(const std::string& expected, std::string_view got) const {
  std::string shown(got.substr(0, kShownText));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
  throw TraceError(path_ + ":" + std::to_string(std::max<std::int64_t>(line_, 1)) + ": expected " + expected +
                   ", got '" + shown + (got.size() > kShownText ? "...'" : "'"));
}

std::int64_t TraceFile::read_count(std::string_view text, const std::string& what, std::int64_t largest) const {
  std::int64_t count = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 0 || count > largest)
    refuse(what + ": an integer from 0 to " + std::to_string(largest), text);
  return count;
}

}  // namespace inferometer
