// Names with wildcards: * is any run of characters, ? is one.
#pragma once

#include <string_view>

namespace inferometer {

constexpr bool is_glob(std::string_view pattern) { return pattern.find_first_of("*?") != std::string_view::npos; }

constexpr bool glob_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;  // the last * met, which may take one character more
  std::size_t after_star = 0;                 // where in `name` the rest of the pattern was last tried
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace inferometer
