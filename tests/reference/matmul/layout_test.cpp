// How quantised weights lie in memory: bytes known by hand, round trips, sizes.
#include "reference/matmul/layout.hpp"

#include <cstdint>
#include <vector>

#include "harness/operator/registry.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

using Codes = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;

Bytes packed(const MatmulProblem& p, const Codes& q) {
  Bytes bytes(static_cast<std::size_t>(code_row_bytes(p)), 0xff);
  pack_codes(p, q, bytes);
  return bytes;
}

Bytes packed_zeros(const MatmulProblem& p, const Codes& z) {
  Bytes bytes(static_cast<std::size_t>(zero_row_bytes(p)), 0xff);
  pack_zeros(p, z, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("matmul layout: bytes known by hand", "[matmul][layout]") {
  CHECK(packed({.k = 4, .bits = 4}, {-8, 7, 0, -1}) == Bytes{0xf0, 0x78});
  CHECK(packed({.k = 4, .bits = 4, .symmetric = false}, {0, 15, 8, 7}) == Bytes{0xf0, 0x78});
  CHECK(packed({.k = 3, .bits = 8}, {-128, 127, -1}) == Bytes{0x80, 0x7f, 0xff});
  CHECK(packed({.k = 3, .bits = 8, .symmetric = false}, {0, 255, 128}) == Bytes{0x00, 0xff, 0x80});
  const MatmulProblem three{.k = 96, .bits = 4, .group_size = 32, .symmetric = false};
  CHECK(packed_zeros(three, {1, 2, 3}) == Bytes{0x21, 0x03});  // the last nibble is 0
  CHECK(packed_zeros({.k = 64, .bits = 8, .group_size = 32, .symmetric = false}, {7, 255}) == Bytes{7, 255});
  CHECK(packed_zeros({.k = 64, .bits = 4, .group_size = 32}, {0, 0}).empty());
}

TEST_CASE("matmul layout: all codes in all positions survive a round trip", "[matmul][layout]") {
  for (MatmulProblem p : test::weight_formats()) {
    p.k = 16;
    CAPTURE(to_string(test::quantized_fields(p)));
    const std::int32_t levels = 1 << p.bits;
    const std::int32_t least = p.symmetric ? -levels / 2 : 0;
    for (std::int32_t first = 0; first < levels; ++first) {
      Codes q(16);
      for (std::int32_t i = 0; i < 16; ++i) q[static_cast<std::size_t>(i)] = least + (first + 5 * i) % levels;
      Codes back(16);
      unpack_codes(p, packed(p, q), back);
      REQUIRE(back == q);
      if (p.symmetric) continue;
      p.k = 16 * 128;
      Codes z(static_cast<std::size_t>(p.groups()));
      for (std::size_t g = 0; g < z.size(); ++g) z[g] = (first + 3 * static_cast<std::int32_t>(g)) % levels;
      Codes zeros_back(z.size());
      unpack_zeros(p, packed_zeros(p, z), zeros_back);
      REQUIRE(zeros_back == z);
      p.k = 16;
    }
  }
}

TEST_CASE("matmul layout: a group size that does not divide k leaves a short last group", "[matmul][layout]") {
  CHECK(MatmulProblem{.k = 10944, .bits = 4, .group_size = 128}.groups() == 86);  // 85.5
  CHECK(MatmulProblem{.k = 29568, .bits = 4, .group_size = 128}.groups() == 231);
  CHECK(MatmulProblem{.k = 30, .bits = 4, .group_size = 32}.groups() == 1);
  CHECK(MatmulProblem{.k = 10944, .bits = 4}.groups() == 1);
}

TEST_CASE("matmul layout: tensors have exactly the bytes that the layout states", "[matmul][layout]") {
  const Operator& matmul = *find_operator("matmul");
  for (MatmulProblem p : test::weight_formats()) {
    p.m = 3;
    p.n = 5;
    p.k = 322;
    CAPTURE(to_string(test::quantized_fields(p)));
    const auto problem = matmul.parse(test::quantized_fields(p));
    const std::vector<TensorSpec> specs = matmul.tensors(problem.get());
    const std::int64_t groups = p.group_size == 0 ? 1 : (322 + p.group_size - 1) / p.group_size;
    REQUIRE(specs.size() == (p.symmetric ? 4U : 5U));
    CHECK(specs[1].bytes() == (p.bits == 8 ? 5 * 322 : 5 * 161));
    CHECK(specs[2].bytes() == 5 * groups * 2);
    if (!p.symmetric) CHECK(specs[3].bytes() == (p.bits == 8 ? 5 * groups : 5 * ((groups + 1) / 2)));
  }
}
