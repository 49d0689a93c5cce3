// Text as parts of a Markdown page.
#pragma once

#include <string>
#include <vector>

#include "harness/operator/fields.hpp"

namespace inferometer {

// Text that can become neither markup nor the end of its table cell.
std::string markdown_cell(const std::string& text);
std::string markdown_cell(const Value& value);

// A path as the target of a link (RFC 3986: all but unreserved characters and '/' percent-encoded).
std::string markdown_link_target(const std::string& path);

// "| a | b |" and the end of the line, of cells that are ready.
std::string markdown_table_line(const std::vector<std::string>& cells);
// The first two lines of a table, all its columns to the right.
std::string markdown_table_header(const std::vector<std::string>& names);

}  // namespace inferometer
