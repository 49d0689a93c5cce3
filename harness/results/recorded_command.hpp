// The command line of a run as its results record it: enough to run it again, without the folders of the machine.
#pragma once

#include <string>
#include <vector>

namespace inferometer {

// `path` from the folder `project` on where it lies in there, else as given. Both may be relative to the current
// folder.
std::string path_in_project(const std::string& path, const std::string& project);

// `argv` with each of `configs` as path_in_project says, or its file name alone where that is an absolute path, and the
// last name of `output` in place of its path, in whichever form the option stands: -o PATH, -oPATH, --output=PATH.
std::vector<std::string> recorded_command(std::vector<std::string> argv, const std::vector<std::string>& configs,
                                          const std::string& output, const std::string& project);

}  // namespace inferometer
