#include "harness/results/json_error_words.hpp"

#include <cstddef>
#include <string_view>

namespace inferometer {

std::string without_json_tags(std::string sentence) {
  constexpr std::string_view kTag = "[json.exception.";
  for (std::size_t tag = 0; (tag = sentence.find(kTag, tag)) != std::string::npos;) {
    const std::size_t end = sentence.find("] ", tag);
    if (end == std::string::npos) break;
    sentence.erase(tag, end + 2 - tag);
  }
  return sentence;
}

}  // namespace inferometer
