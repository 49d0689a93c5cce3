#include "harness/results/markdown_text.hpp"

#include <cstdint>
#include <string_view>
#include <variant>

#include "harness/results/shown_fields.hpp"

namespace inferometer {

std::string markdown_cell(const std::string& text) {
  constexpr std::string_view kMarkup = "|<`*_\\[]";
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') safe += ' ';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) continue;  // control characters
    if (kMarkup.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

std::string markdown_cell(const Value& value) {
  const std::string text = short_text(value);
  // A list of integers is not escaped: its brackets are ours, and no link follows them.
  return std::holds_alternative<std::vector<std::int64_t>>(value) ? text : markdown_cell(text);
}

std::string markdown_link_target(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string target;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      target += c;
    } else {
      target += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return target;
}

std::string markdown_table_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + text + " |";
  return line + "\n";
}

std::string markdown_table_header(const std::vector<std::string>& names) {
  std::vector<std::string> cells;
  cells.reserve(names.size());
  for (const std::string& name : names) cells.push_back(markdown_cell(name));
  return markdown_table_line(cells) + markdown_table_line(std::vector<std::string>(names.size(), "---:"));
}

}  // namespace inferometer
