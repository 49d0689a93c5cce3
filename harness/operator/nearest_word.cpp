#include "harness/operator/nearest_word.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace inferometer {
namespace {

constexpr std::size_t kLongestWord = 64;     // longer is no mistyped name, and its distance would be slow to compute
constexpr std::size_t kLongestText = 200;    // bytes of a text before it is cut
constexpr std::size_t kShortestInside = 3;   // letters a word must share to count as contained in another
constexpr std::size_t kEditsPerLetters = 3;  // one edit is forgiven for so many letters, and one more

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U; }

std::string lower(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Optimal string alignment distance: Levenshtein's, with a swap of neighbours as one edit.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> previous(b.size() + 1);
  std::vector<std::size_t> current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string nearest_word(std::string_view given, const std::vector<std::string>& candidates) {
  if (given.empty() || given.size() > kLongestWord) return {};
  const std::string word = lower(given);
  std::string nearest;
  std::size_t least = 2 * (2 + word.size() / kEditsPerLetters);  // one past what is forgiven; doubled, so that
  for (const std::string& candidate : candidates) {              // among equals the same first letter can win
    const std::string other = lower(candidate);
    const bool same_start = !other.empty() && other.front() == word.front();
    const std::size_t distance = 2 * edit_distance(word, other) + (same_start ? 0 : 1);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  if (!nearest.empty() || word.size() < kShortestInside) return nearest;
  const auto contains = [&word](const std::string& candidate) {
    return lower(candidate).find(word) != std::string::npos;
  };
  const auto found = std::find_if(candidates.begin(), candidates.end(), contains);
  return found != candidates.end() ? *found : std::string{};
}

std::string unknown_word(std::string_view kind, std::string_view given, const std::vector<std::string>& candidates) {
  std::string message = "unknown " + std::string(kind) + " " + in_quotes(given);
  if (const std::string nearest = nearest_word(given, candidates); !nearest.empty())
    message += ", nearest is '" + nearest + "'";
  return message + (candidates.empty() ? "; there is none" : "; allowed: " + joined(candidates));
}

std::string printable(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::size_t end = std::min(text.size(), kLongestText);
  while (end > 0 && end < text.size() && is_continuation(text[end])) --end;  // never within a UTF-8 character
  std::string result;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      result += c;
    } else {
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return result + (end < text.size() ? "..." : "");
}

std::string in_quotes(std::string_view text) { return "'" + printable(text) + "'"; }

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

}  // namespace inferometer
