// Files that are whole or not there.
#pragma once

#include <string>
#include <string_view>

namespace inferometer {

// Writes to a temporary file in the same folder, flushes it to the disk and renames it over `path`: at every moment
// `path` is the old file or the new one. Throws std::system_error naming the path; then `path` is as it was.
void write_file_atomically(const std::string& path, std::string_view text);

// Whether `bytes` could be written beside `path` now: folder, permission, space, limits. Throws like the above.
void check_writable(const std::string& path, std::size_t bytes);

}  // namespace inferometer
