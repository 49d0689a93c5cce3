// Where the project lies, for the experiments in it and for paths that results record.
#pragma once

#include <string>

namespace inferometer {

// The launcher says it; without the launcher, the current folder.
std::string project_folder();

}  // namespace inferometer
