#include "harness/results/html/text.hpp"

namespace inferometer {

std::string html_text(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      default: {
        const auto byte = static_cast<unsigned char>(c);
        const bool control = (byte < 0x20 && c != '\n') || byte == 0x7f;  // not allowed in HTML
        safe += control ? ' ' : c;
      }
    }
  }
  return safe;
}

std::string html_element(std::string_view tag, std::string_view attributes, std::string_view text) {
  std::string element = "<";
  element.append(tag);
  if (!attributes.empty()) element.append(" ").append(attributes);
  return element.append(">").append(html_text(text)).append("</").append(tag).append(">");
}

std::string script_json(const Json& json) {
  const std::string line = to_line(json);
  std::string safe;
  safe.reserve(line.size());
  for (const char c : line) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace inferometer
