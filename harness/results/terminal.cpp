#include "harness/results/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace inferometer {
namespace {

struct Unit {
  double factor;
  const char* name;
};

// The largest unit of which `value` has at least one.
template <std::size_t N>
std::string in_unit(double value, const std::array<Unit, N>& largest_first) {
  const auto found = std::find_if(largest_first.begin(), largest_first.end() - 1,
                                  [&](const Unit& unit) { return std::fabs(value) >= unit.factor * 0.9995; });
  const double scaled = value / found->factor;
  const int decimals = std::fabs(scaled) >= 99.95 ? 0 : std::fabs(scaled) >= 9.995 ? 1 : 2;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", decimals, scaled, found->name);
  return text.data();
}

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

}  // namespace

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) == 1; }

bool shows_colour(std::FILE* stream) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(stream) && (no_colour == nullptr || *no_colour == '\0');
}

int terminal_columns(std::FILE* stream) {
  winsize size{};
  constexpr int kUsual = 80;
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

std::string coloured(std::string_view text, Status status, bool colour) {
  if (!colour) return std::string(text);
  const char* code = "\x1b[31m";  // red: went wrong
  if (status == Status::ok) code = "\x1b[32m";
  if (status == Status::unsupported) code = "\x1b[2m";
  if (status == Status::suspect) code = "\x1b[33m";
  return code + std::string(text) + "\x1b[0m";
}

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string shown_time(double ns) {
  return in_unit(ns, std::array<Unit, 4>{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}});
}

std::string shown_bytes(double bytes) {
  return in_unit(bytes, std::array<Unit, 4>{{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}});
}

std::string shown_rate(const Rates& rates) {
  const bool compute = rates.limit == "compute" || (rates.limit.empty() && !rates.bytes_per_s);
  if (compute && rates.flops_per_s)
    return in_unit(*rates.flops_per_s, std::array<Unit, 3>{{{1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}}});
  if (rates.bytes_per_s)
    return in_unit(*rates.bytes_per_s, std::array<Unit, 3>{{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}}});
  return {};
}

std::string shortened(std::string_view text, std::size_t columns) {
  constexpr std::string_view kCut = "...";
  if (columns_of(text) <= columns) return std::string(text);
  const std::size_t kept = columns > kCut.size() ? columns - kCut.size() : 0;
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end) {
    if (continues_character(text[end])) continue;
    if (seen == kept) break;
    ++seen;
  }
  return std::string(text.substr(0, end)).append(kCut.substr(0, columns));
}

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    if (!lines.empty() && columns_of(lines.back()) + 1 + columns_of(word) <= columns) {
      lines.back().append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

}  // namespace inferometer
