// Requests from a table of comma-separated values with a header; request.hpp names the columns.
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/kv_memory/trace_file.hpp"

namespace inferometer {
namespace {

// The fields of a line; quotes around a field are taken off, a quote in it is doubled. False: a quote is not closed.
bool split(std::string_view line, std::vector<std::string>& fields) {
  fields.assign(1, {});
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) {
        fields.back() += c;
        ++i;
      } else {
        quoted = !quoted;
      }
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return !quoted;
}

// "2023-11-16 18:15:46.6805900" in ms since 1970, or nothing.
std::optional<double> parse_timestamp(std::string_view text) {
  std::array<int, 5> parts{};  // year, month, day, hour, minute
  constexpr std::string_view kBehind = "-- ::";
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [behind, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || behind == end || *behind != kBehind[i] || parts[i] < 0) return std::nullopt;
    at = behind + 1;
  }
  double seconds = -1;
  const auto [behind, error] = std::from_chars(at, end, seconds, std::chars_format::fixed);
  const std::chrono::year_month_day date{std::chrono::year(parts[0]),
                                         std::chrono::month(static_cast<unsigned>(parts[1])),
                                         std::chrono::day(static_cast<unsigned>(parts[2]))};
  if (error != std::errc() || behind != end || !(seconds >= 0 && seconds < 61) || !date.ok() || parts[3] > 23 ||
      parts[4] > 59)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return 1e3 * (60.0 * (60.0 * (24.0 * static_cast<double>(days) + parts[3]) + parts[4]) + seconds);
}

class CsvTrace : public TraceFile {
 public:
  CsvTrace(const std::string& path, bool needs_arrivals) : TraceFile(path, needs_arrivals) {
    std::string_view header;
    if (!read_line(header) || header.empty()) refuse("a header with the names of the columns", "an empty file");
    if (header.starts_with("\xef\xbb\xbf")) header.remove_prefix(3);  // a byte order mark
    if (!split(header, fields_)) refuse("a header with closed quotes", header);
    prompt_ = column({"ContextTokens", "num_prefill_tokens"}, header);
    output_ = column({"GeneratedTokens", "num_decode_tokens"}, header);
    if (needs_arrivals) timestamp_ = column({"TIMESTAMP"}, header);
    columns_ = fields_.size();
    names_ = fields_;
  }

 private:
  void read_row(std::string_view line, KvRequest& request) override {
    if (!split(line, fields_) || fields_.size() != columns_)
      refuse(std::to_string(columns_) + " columns, as the header has", line);
    request.prompt = read_count(fields_[prompt_], names_[prompt_]);
    request.output = read_count(fields_[output_], names_[output_]);
    if (!needs_arrivals()) return;
    const std::optional<double> arrival_ms = parse_timestamp(fields_[timestamp_]);
    if (!arrival_ms) refuse("TIMESTAMP: a time such as 2023-11-16 18:15:46.6805900", fields_[timestamp_]);
    request.arrival_ms = *arrival_ms;
  }

  std::size_t column(std::initializer_list<std::string_view> names, std::string_view header) const {
    std::string all;
    for (const std::string_view name : names) {
      for (std::size_t i = 0; i < fields_.size(); ++i)
        if (fields_[i] == name) return i;
      all += (all.empty() ? "" : " or ") + std::string(name);
    }
    refuse("a header with a column " + all, header);
  }

  std::size_t prompt_ = 0;
  std::size_t output_ = 0;
  std::size_t timestamp_ = 0;
  std::size_t columns_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string> fields_;  // of the last line
};

}  // namespace

std::unique_ptr<RequestSource> open_csv_trace(const std::string& path, bool needs_arrivals) {
  return std::make_unique<CsvTrace>(path, needs_arrivals);
}

}  // namespace inferometer
