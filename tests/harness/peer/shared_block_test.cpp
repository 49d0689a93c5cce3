#include "harness/peer/shared_block.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("shared memory: another process reads and writes it through its path", "[peer]") {
  const SharedBlock block(5);
  std::memcpy(block.data(), "hello", 5);
  std::ifstream file(block.path(), std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "hello");
  std::fstream(block.path(), std::ios::binary | std::ios::in | std::ios::out) << "j";
  CHECK(std::string(static_cast<const char*>(block.data()), 5) == "jello");
}

TEST_CASE("shared memory: more than there can be is out of memory", "[peer]") {
  CHECK_THROWS_AS(SharedBlock(std::size_t{1} << 62), OutOfMemory);
}
