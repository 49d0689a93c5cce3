// What the JSON library says of an error, for users.
#pragma once

#include <string>

namespace inferometer {

// Without the tags that the library puts before its own sentences, "[json.exception.type_error.302] ". Any sentence
// may be given: what was caught may quote the library anywhere.
std::string without_json_tags(std::string sentence);

}  // namespace inferometer
