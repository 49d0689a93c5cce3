// Text as parts of an HTML page: whatever it holds, it can become neither markup nor the end of a script.
#pragma once

#include <string>
#include <string_view>

#include "harness/results/json.hpp"

namespace inferometer {

// For text between tags and for attributes in double quotes. Control characters become blanks.
std::string html_text(std::string_view text);

// <tag attributes>text</tag>; the text is escaped, the attributes are not.
std::string html_element(std::string_view tag, std::string_view attributes, std::string_view text);

// `json` for a <script type="application/json">: no "<", so that no value can close the element or open a comment.
std::string script_json(const Json& json);

}  // namespace inferometer
