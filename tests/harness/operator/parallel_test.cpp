#include "harness/operator/parallel.hpp"

#include <new>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("parallel_for: every index is handed out once", "[operator][parallel]") {
  for (const int threads : {1, 2, 7}) {
    std::vector<int> calls(100, 0);
    parallel_for(std::ssize(calls), threads, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
    CHECK(calls == std::vector<int>(100, 1));
  }
  parallel_for(0, 2, [](std::int64_t) { FAIL("there is no index"); });
}

TEST_CASE("parallel_for: what a body throws reaches the caller, and no further body begins", "[operator][parallel]") {
  for (const int threads : {1, 2}) {
    std::atomic<int> begun = 0;
    const auto body = [&](std::int64_t) {
      ++begun;
      throw std::bad_alloc();
    };
    CHECK_THROWS_AS(parallel_for(1000, threads, body), std::bad_alloc);
    CHECK(begun >= 1);
    CHECK(begun <= threads);  // a thread sees at least the exception that it kept itself
  }
  // Of several exceptions the first to be thrown; one thread has them in order.
  CHECK_THROWS_WITH(parallel_for(3, 1, [](std::int64_t i) { throw std::runtime_error(std::to_string(i)); }), "0");
}
