// Error messages about words: what was meant, and what is allowed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferometer {

// The candidate that `given` was probably meant to be: few edits away (insert, delete, replace, swap neighbours; case
// ignored), or one that contains it. Empty when none is close.
std::string nearest_word(std::string_view given, const std::vector<std::string>& candidates);

// "unknown field 'hed_dim', nearest is 'head_dim'; allowed: batch, head_dim, dtype"
std::string unknown_word(std::string_view kind, std::string_view given, const std::vector<std::string>& candidates);

// `text` for a message: on one line, control characters as \xNN, cut where it grows too long to read.
std::string printable(std::string_view text);

// The same in single quotes.
std::string in_quotes(std::string_view text);

// "a, b, c"
std::string joined(const std::vector<std::string>& words);

}  // namespace inferometer
