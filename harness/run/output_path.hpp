// Where results go, found wanting before the first row rather than after the last.
#pragma once

#include <cstddef>
#include <string>

namespace inferometer {

// The file that `output` names, symbolic links followed (to files that are not there yet, too), its folder made if it
// is not there. Throws OutputError when a regular file cannot be put there, or one is there that is not empty and no
// results file: nobody's notes are overwritten.
std::string resolve_output(const std::string& output);

// Throws OutputError when there is no room beside `path` for the journal and the results of `rows` rows.
void check_room(const std::string& path, std::size_t rows);

}  // namespace inferometer
