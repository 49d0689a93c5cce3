// Algorithms that articles show with an error in them, run beside the right ones: each on inputs small enough to check
// with a pencil.
#pragma once

#include <string>
#include <vector>

namespace inferometer {

struct Demonstration {
  std::string name;      // "log-sum-exp"
  std::string sentence;  // on which input, and what goes wrong
  std::string figure;    // what both values are of
  std::string wrong_rule;
  std::string right_rule;
  double wrong = 0;
  double right = 0;
};

std::vector<Demonstration> demonstrations();

std::string demonstrations_text(const std::vector<Demonstration>& list, std::size_t columns);
std::string demonstrations_markdown(const std::vector<Demonstration>& list);

}  // namespace inferometer
