#include "harness/results/recorded_command.hpp"

#include <filesystem>

#include "tests/support/catch.hpp"

using namespace inferometer;
using Words = std::vector<std::string>;

TEST_CASE("recorded command: a config of the project stands from its folder on", "[results]") {
  CHECK(path_in_project("/home/me/project/experiments/a.json", "/home/me/project") == "experiments/a.json");
  CHECK(path_in_project("/home/me/project/x/../experiments/a.json", "/home/me/project/") == "experiments/a.json");
  CHECK(path_in_project("experiments/a.json", ".") == "experiments/a.json");
  CHECK(path_in_project("./a.json", ".") == "a.json");
  CHECK(path_in_project("a.json", std::filesystem::current_path().parent_path().string()) ==
        (std::filesystem::current_path().filename() / "a.json").string());
}

TEST_CASE("recorded command: the path of a config elsewhere stays as it was given", "[results]") {
  CHECK(path_in_project("/home/me/a.json", "/home/me/project") == "/home/me/a.json");
  CHECK(path_in_project("/home/me/project2/a.json", "/home/me/project") == "/home/me/project2/a.json");
  CHECK(path_in_project("../a.json", ".") == "../a.json");
}

TEST_CASE("recorded command: no folder of the machine stands in it", "[results]") {
  const auto recorded = [](const Words& argv, const std::string& output) {
    return recorded_command(argv, {"/p/experiments/a.json", "/elsewhere/b.json", "c.json"}, output, "/p");
  };
  CHECK(recorded({"run", "/p/experiments/a.json", "/elsewhere/b.json", "c.json"}, "") ==
        Words{"run", "experiments/a.json", "b.json", "c.json"});
  CHECK(recorded({"run", "c.json", "-o", "/far/out/r.json", "--quick"}, "/far/out/r.json") ==
        Words{"run", "c.json", "-o", "r.json", "--quick"});
  CHECK(recorded({"run", "c.json", "-o/far/out/r.json"}, "/far/out/r.json") == Words{"run", "c.json", "-or.json"});
  CHECK(recorded({"run", "c.json", "--output=/far/out/r/"}, "/far/out/r/") == Words{"run", "c.json", "--output=r/"});
  CHECK(recorded({"run", "c.json", "-o", "out"}, "out") == Words{"run", "c.json", "-o", "out"});
}

TEST_CASE("recorded command: a word that only ends like the output stays", "[results]") {
  CHECK(recorded_command({"run", "--filter", "q_len == 1/2", "-o", "1/2"}, {}, "1/2", ".") ==
        Words{"run", "--filter", "q_len == 1/2", "-o", "2"});
}
