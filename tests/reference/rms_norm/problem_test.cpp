// The problem of rms_norm: what is refused, what it is made of, what it costs.
#include "reference/rms_norm/problem.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& norm() { return *find_operator("rms_norm"); }

Value number(std::int64_t value) { return value; }

// The sentence that a problem is refused with; empty when it is accepted.
std::string refusal(const Fields& fields) {
  try {
    norm().parse(fields);
  } catch (const ProblemError& error) {
    return error.what();
  }
  return {};
}

double bytes_of(const Fields& fields) { return norm().work(norm().parse(fields).get()).bytes; }

}  // namespace

TEST_CASE("rms_norm: impossible problems are refused in a sentence", "[rms_norm][reference]") {
  CHECK(refusal({}).empty());
  CHECK(refusal({{"hidden", number(7)}}).empty());  // the mathematics knows no vectors
  CHECK(refusal({{"eps", 0.0}}).starts_with("eps must be"));
  CHECK(refusal({{"hidden", number(0)}}).starts_with("hidden must be"));
  CHECK(refusal({{"dtype", std::string("f32")}}).starts_with("dtype must be"));
  CHECK_FALSE(refusal({{"rows", number(std::int64_t{1} << 40)}, {"hidden", number(std::int64_t{1} << 40)}}).empty());
}

TEST_CASE("rms_norm: tensors of the residual stream are there when it is asked for", "[rms_norm][reference]") {
  const auto names = [](bool residual) {
    std::vector<std::string> found;
    for (const TensorSpec& spec : norm().tensors(norm().parse({{"residual", residual}}).get()))
      found.push_back(spec.name);
    return found;
  };
  CHECK(names(false) == std::vector<std::string>{"x", "w", "y"});
  CHECK(names(true) == std::vector<std::string>{"x", "w", "y", "h", "h_sum"});
}

TEST_CASE("rms_norm: bytes are what is read and what is written", "[rms_norm][reference]") {
  CHECK(bytes_of({{"rows", number(10)}, {"hidden", number(24)}}) == 2 * (2 * 10 * 24 + 24));
  CHECK(bytes_of({{"rows", number(10)}, {"hidden", number(24)}, {"residual", true}}) == 2 * (4 * 10 * 24 + 24));
}
