#include "harness/sweep/glob.hpp"

#include "tests/support/catch.hpp"

using inferometer::glob_matches;

TEST_CASE("glob: * is any run of characters, ? is one", "[sweep][glob]") {
  CHECK(glob_matches("cuda.*", "cuda.flash_sm80"));
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("*flash*", "cpu.flash"));
  CHECK(glob_matches("c*.f*h", "cpu.flash"));
  CHECK(glob_matches("*ab*ab", "abab"));
  CHECK(glob_matches("cpu.?????", "cpu.flash"));
  CHECK(glob_matches("cpu.flash", "cpu.flash"));
  CHECK_FALSE(glob_matches("cuda.*", "cpu.flash"));
  CHECK_FALSE(glob_matches("cpu.?", "cpu."));
  CHECK_FALSE(glob_matches("cpu", "cpu.flash"));
  CHECK_FALSE(glob_matches("", "a"));
  CHECK_FALSE(glob_matches("*a", "ab"));
}
