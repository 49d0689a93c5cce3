#include "harness/claims/demonstrations.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

Demonstration named(const std::string& name) {
  const std::vector<Demonstration> all = demonstrations();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Demonstration& one) { return one.name == name; });
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("demonstrations: the log-sum-exp is that of the scores", "[claims][demonstrations]") {
  const Demonstration shown = named("log-sum-exp");
  const double l = 1 + std::exp(-1) + std::exp(-2);  // by hand, of 12, 11 and 10
  CHECK(shown.right == Approx(std::log(std::exp(10) + std::exp(11) + std::exp(12))));
  CHECK(shown.wrong == Approx(l + std::log(l)));
}

TEST_CASE("demonstrations: a new query sees the whole cache, not its first key", "[claims][demonstrations]") {
  CHECK(named("causal mask").right == 8);
  CHECK(named("causal mask").wrong == 1);
}

TEST_CASE("demonstrations: GPTQ finds the best weights of the grid, rounding does not", "[claims][demonstrations]") {
  double best = 1e9;
  for (const double a : {-1.0, 0.0, 1.0, 2.0})
    for (const double b : {-1.0, 0.0, 1.0, 2.0}) {
      const double d0 = 0.4 - a;
      const double d1 = 0.4 - b;
      best = std::min(best, std::sqrt(d0 * d0 + 2 * 0.9 * d0 * d1 + d1 * d1));
    }
  CHECK(named("GPTQ").right == Approx(best));
  CHECK(named("GPTQ").wrong == Approx(std::sqrt(2 * 0.16 * 1.9)));  // both weights to 0
}

TEST_CASE("demonstrations: one scale for two channels loses the small one", "[claims][demonstrations]") {
  CHECK(named("group scales").wrong == Approx(1));                // every weight becomes 0
  CHECK(named("group scales").right == Approx(0).margin(1e-12));  // they are whole multiples of its own scale
}

TEST_CASE("demonstrations: INT4 with scales is 3.88 times smaller than FP16", "[claims][demonstrations]") {
  CHECK(named("INT4 memory").right == Approx(3.879).margin(0.0005));  // three digits
  CHECK(named("INT4 memory").wrong == 8);
}

TEST_CASE("demonstrations: text and Markdown show each with both values", "[claims][demonstrations]") {
  const std::vector<Demonstration> all = demonstrations();
  CHECK(all.size() == 5);
  const std::string text = demonstrations_text(all, 100);
  const std::string markdown = demonstrations_markdown(all);
  for (const Demonstration& one : all) {
    CHECK_THAT(text, test::contains_text(one.name + ": " + one.figure));
    CHECK_THAT(text, test::contains_text(one.wrong_rule));
    CHECK_THAT(markdown, test::contains_text("`" + one.right_rule + "`"));
  }
  CHECK_THAT(text, test::contains_text("wrong  1.911"));
  CHECK_THAT(text, test::contains_text("right  12.41"));
}
