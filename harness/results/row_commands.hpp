// The commands that a results row carries: how to measure it again, how to look inside.
#pragma once

#include <string>
#include <vector>

namespace inferometer {

// A word as a POSIX shell reads it back.
std::string shell_quoted(const std::string& word);

// The command that measures one row again under the same conditions, from the command line of this run.
std::string reproduce_line(const std::string& config_path, const std::string& row_id,
                           const std::vector<std::string>& argv);

// The command that profiles the row which `reproduce` measures; empty where that is no such command.
std::string profile_line(const std::string& reproduce);

}  // namespace inferometer
