// What a command wrote, to a file or to standard output.
#pragma once

#include <string>

namespace inferometer {

// Refuses to replace results, and what is no regular file: a device, a folder. Throws ConfigError.
void require_replaceable(const std::string& command, const std::string& path);

// `path` is what followed -o of `command`; empty: standard output. Throws ConfigError where it cannot be written.
void put_text(const std::string& command, const std::string& path, const std::string& text);

}  // namespace inferometer
