// Registration: lookups, and what ends the program before main.
#include "harness/operator/registry.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <cstdio>
#include <string>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

Variant named(const std::string& name) {
  Variant variant;
  variant.operator_name = "registry_test";
  variant.name = name;
  return variant;
}

Operator operator_named(const std::string& name) {
  Operator op;
  op.name = name;
  return op;
}

// What `action` writes to standard error before it ends a child process with the exit code of wrong use; else "lived".
template <class Action>
std::string last_words(const Action& action) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    action();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  char buffer[512];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof(buffer))) > 0;) words.append(buffer, count);
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  constexpr int kWrongUse = 2;
  return WIFEXITED(status) && WEXITSTATUS(status) == kWrongUse ? words : "lived";
}

}  // namespace

TEST_CASE("registry: variants are found by operator and name, sorted", "[registry]") {
  register_variant(named("cuda.b"));
  register_variant(named("cpu.z"));
  register_variant(named("cuda.a"));
  std::vector<std::string> names;
  for (const Variant* variant : variants_of("registry_test")) names.push_back(variant->name);
  CHECK(names == std::vector<std::string>{"cpu.z", "cuda.a", "cuda.b"});
  REQUIRE(find_variant("registry_test", "cpu.z") != nullptr);
  CHECK(find_variant("registry_test", "cpu.z")->backend() == "cpu");
  CHECK_FALSE(find_variant("registry_test", "cpu.z")->on_gpu());
  CHECK(find_variant("registry_test", "cuda.b")->on_gpu());
  CHECK(find_variant("registry_test", "cuda.c") == nullptr);
  CHECK(find_variant("no_such_operator", "cpu.z") == nullptr);
  CHECK(variants_of("no_such_operator").empty());
  CHECK(find_operator("no_such_operator") == nullptr);
}

TEST_CASE("registry: a variant that this build lacks is unsupported, with the reason", "[registry]") {
  Variant variant = named("cuda.absent");
  variant.not_built = "this build has no CUDA";
  variant.operator_name = "registry_test_absent";
  register_variant(variant);
  CHECK(find_variant("registry_test_absent", "cuda.absent")->unsupported(nullptr) == "this build has no CUDA");
}

TEST_CASE("registry: operators are sorted by name", "[registry]") {
  const auto operators = all_operators();
  REQUIRE(operators.size() >= 2);
  for (std::size_t i = 1; i < operators.size(); ++i) CHECK(operators[i - 1]->name < operators[i]->name);
  for (const Operator* op : operators) CHECK(find_operator(op->name) == op);
}

TEST_CASE("registry: every variant of every operator can be told apart by backend", "[registry]") {
  for (const Operator* op : all_operators())
    for (const Variant* variant : variants_of(op->name)) {
      INFO(op->name << "/" << variant->name);
      CHECK(variant->operator_name == op->name);
      CHECK_FALSE(variant->backend().empty());
      CHECK_FALSE(variant->summary.empty());
    }
}

TEST_CASE("registry: a variant registered twice ends the program with its names", "[registry]") {
  CHECK(last_words([] {
          register_variant(named("cpu.twice"));
          register_variant(named("cpu.twice"));
        }) == "inferometer: registration: variant 'registry_test/cpu.twice' is registered twice\n");
}

TEST_CASE("registry: a variant without a backend ends the program with its name", "[registry]") {
  for (const char* name : {"naive", ".naive", "cpu.", "cpu.na ive", "cpu.naive.2", "CPU.naive", ""}) {
    INFO(name);
    CHECK(last_words([name] { register_variant(named(name)); }) ==
          "inferometer: registration: variant 'registry_test/" + std::string(name) +
              "': a name is '<backend>.<method>', each made of a-z, 0-9 and _\n");
  }
  CHECK(last_words([] { register_variant(named("cpu.fine")); }) == "lived");
}

TEST_CASE("registry: an operator registered twice or with a bad name ends the program", "[registry]") {
  CHECK(last_words([] {
          register_operator(operator_named("twice"));
          register_operator(operator_named("twice"));
        }) == "inferometer: registration: operator 'twice' is registered twice\n");
  CHECK(last_words([] { register_operator(operator_named("a/b")); }) ==
        "inferometer: registration: operator 'a/b': a name is made of a-z, 0-9 and _\n");
}
