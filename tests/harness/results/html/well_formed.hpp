// Whether a page's tags are those of a tree, for tests: stricter than browsers, which accept anything.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace inferometer::test {

// The first fault, or empty: an end tag that closes another element, an element never closed, a value without quotes.
inline std::string html_fault(std::string_view page) {
  constexpr std::array<std::string_view, 4> kVoid{"meta", "!doctype", "img", "input"};
  std::vector<std::string> open;
  std::size_t at = 0;
  while ((at = page.find('<', at)) != std::string_view::npos) {
    if (page.substr(at).starts_with("<!--")) {
      at = page.find("-->", at);
      continue;
    }
    const std::size_t end = page.find('>', at);
    if (end == std::string_view::npos) return "a tag without an end";
    const std::string_view tag = page.substr(at + 1, end - at - 1);
    const bool closes = tag.starts_with("/");
    const std::string name(tag.substr(closes ? 1 : 0, tag.find_first_of(" \n/", 1) - (closes ? 1 : 0)));
    if (closes) {
      if (open.empty() || open.back() != name)
        return "</" + name + "> closes <" + (open.empty() ? "" : open.back()) + "> at " + std::to_string(at);
      open.pop_back();
    } else if (!tag.ends_with("/") && std::find(kVoid.begin(), kVoid.end(), name) == kVoid.end()) {
      open.push_back(name);
      for (std::size_t sign = tag.find('='); sign != std::string_view::npos;
           sign = tag.find('=', tag.find('"', sign + 2)))
        if (tag.substr(sign + 1, 1) != "\"") return "a value without quotes in <" + std::string(tag) + ">";
    }
    at = end;
    if (name == "script" || name == "style") at = closes ? end : page.find("</" + name, end);
  }
  return open.empty() ? "" : "<" + open.back() + "> is never closed";
}

}  // namespace inferometer::test
