#include "harness/claims/demonstrations.hpp"
#include "harness/results/markdown_text.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

std::string shown(double value) { return formatted("%.4g", value); }

}  // namespace

std::string demonstrations_text(const std::vector<Demonstration>& list, std::size_t columns) {
  constexpr std::size_t kIndent = 3;
  std::string text;
  for (const Demonstration& one : list) {
    text += one.name + ": " + one.figure + "\n";
    for (const std::string& line : wrapped(one.sentence, columns > kIndent ? columns - kIndent : 1))
      text += std::string(kIndent, ' ') + line + "\n";
    text += "   wrong  " + shown(one.wrong) + "  " + one.wrong_rule + "\n";
    text += "   right  " + shown(one.right) + "  " + one.right_rule + "\n\n";
  }
  return text;
}

std::string demonstrations_markdown(const std::vector<Demonstration>& list) {
  std::string text = markdown_table_line({"algorithm", "wrong", "right", "what happens"}) +
                     markdown_table_line({"---", "---", "---", "---"});
  for (const Demonstration& one : list) {
    text += markdown_table_line({one.name + ": " + one.figure, shown(one.wrong) + " by `" + one.wrong_rule + "`",
                                 shown(one.right) + " by `" + one.right_rule + "`", markdown_cell(one.sentence)});
  }
  return text;
}

}  // namespace inferometer
