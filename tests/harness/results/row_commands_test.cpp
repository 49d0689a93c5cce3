#include "harness/results/row_commands.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("reproduce: repeats what changes a row, quoted for a shell", "[results]") {
  CHECK(reproduce_line("experiments/a.json", "0123", {}) == "./inferometer run experiments/a.json --row 0123");
  CHECK(reproduce_line("my sweep.json", "0123",
                       {"inferometer", "run", "my sweep.json", "--set", "dtype=bf16", "--set", "n=1 2", "-o", "x.json",
                        "--seed=7", "--quick", "--filter", "n > 3", "--variants", "cpu.*,it's"}) ==
        "./inferometer run 'my sweep.json' --row 0123 --set dtype=bf16 --set 'n=1 2' --seed=7 --quick "
        "--variants 'cpu.*,it'\\''s'");
}

TEST_CASE("reproduce: each word is an option or a value as the command line took it", "[results]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"run", "--device", "1", "a.json"}, " --device 1"},
      {{"run", "--device=1", "a.json"}, " --device=1"},
      {{"run", "--seed=", "7", "a.json"}, " --seed= 7"},
      {{"run", "--quick=true", "a.json"}, " --quick=true"},
      {{"run", "-o", "--seed", "a.json"}, ""},  // a file of that name
      {{"run", "--output", "--quick", "--row", "--set", "--filter", "--device", "a.json"}, ""},
      {{"run", "--set", "--seed", "a.json"}, " --set --seed"},
  };
  for (const auto& [argv, options] : cases)
    CHECK(reproduce_line("a.json", "0123", argv) == "./inferometer run a.json --row 0123" + options);
}

TEST_CASE("profile: the same options choose the row that is profiled", "[results]") {
  CHECK(profile_line("./inferometer run a.json --row 0123 --set dtype=bf16") ==
        "./inferometer profile a.json --row 0123 --set dtype=bf16 --tool nsys");
  CHECK(profile_line("make") == "");
}
