// JSON text -> tree, stricter than the library: no key twice, no deep nesting, members in the order of the file.
#pragma once

#include <cstddef>
#include <string>

#include "harness/results/json.hpp"

namespace inferometer {

// `source` (a file's path) begins the message of every ConfigError: "a.json:3:14: ..." for a syntax error, by line and
// column; "a.json: /axes: ..." for a key given twice.
Json read_json(const std::string& text, const std::string& source);

// The whole file. Throws ConfigError when it cannot be read, or is larger than `max_bytes`, which no `kind` is.
std::string read_text_file(const std::string& path, std::size_t max_bytes, const std::string& kind);

// "/axes/seq_len" and "1" -> "/axes/seq_len/1" (RFC 6901)
std::string json_pointer(const std::string& parent, const std::string& token);

}  // namespace inferometer
