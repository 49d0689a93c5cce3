// What a test leaves out where compute-sanitizer runs it. There a problem takes a hundred times as long, while a tool
// sees what a kernel does in one problem as in the next of the same kind: loops over many such take fewer.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace inferometer::test {

// tests/support/sanitize.sh sets it to the tool's name.
inline const char* sanitizer_tool() { return std::getenv("INFEROMETER_SANITIZER"); }

inline bool under_sanitizer() { return sanitizer_tool() != nullptr; }

inline bool under_racecheck() { return under_sanitizer() && std::string_view(sanitizer_tool()) == "racecheck"; }

// How far a loop goes at a time: 1, or `step` under the sanitizer.
inline std::size_t sanitizer_step(std::size_t step) { return under_sanitizer() ? step : 1; }

// All of the values, or under the sanitizer the first and every `step`-th from there.
template <class T>
std::vector<T> thinned(std::initializer_list<T> values, std::size_t step) {
  std::vector<T> some;
  for (std::size_t i = 0; i < values.size(); i += sanitizer_step(step)) some.push_back(values.begin()[i]);
  return some;
}

// racecheck itself fails in cuBLAS's products ("failed to handle a hardware exception"), and all that follows in the
// same case is then lost: probably since tests/support/sanitize.sh has it leave out kernels that are not ours, and
// theirs run in clusters (results/notes/weight_only_matmul.md).
inline std::vector<std::string> without_cublas_under_racecheck(std::vector<std::string> variants) {
  if (under_racecheck()) std::erase_if(variants, [](const std::string& name) { return name.starts_with("cublas."); });
  return variants;
}

}  // namespace inferometer::test
