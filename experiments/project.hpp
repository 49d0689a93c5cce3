// Where the project lies, for the experiments in it and for paths that results record.
#pragma once

#include <string>
#include <system_error>
#include <vector>

namespace inferometer {

// The launcher says it; without the launcher, the current folder.
std::string project_folder();

// The sweeps of the folder experiments/, by name. What lies beside them and is none, the list of claims, is left out.
// `error` says why the folder cannot be read.
std::vector<std::string> experiment_paths(std::error_code& error);

}  // namespace inferometer
