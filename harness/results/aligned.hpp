// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace inferometer {

// One line for each row, `indent` blanks first, columns two blanks apart; the last column is not padded.
std::string aligned(const std::vector<std::vector<std::string>>& rows, std::size_t indent = 0);

}  // namespace inferometer
