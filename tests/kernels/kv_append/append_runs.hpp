// Runs kv_append on problems that tests write down in a line, and holds the outputs against cpu.naive byte by byte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/run_variant.hpp"

namespace inferometer::test {

struct AppendCase {
  std::vector<std::int64_t> contexts = {0};
  std::int64_t new_tokens = 1;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t block_size = 0;  // 0: cuda.contiguous, else cuda.paged
  std::int64_t kv_bits = 16;
  std::string kv_format = "integer";
  std::int64_t kv_group_size = 0;
  std::string dtype = "f16";
};

// What a cache may hold: kv_bits and kv_format.
struct AppendFormat {
  std::int64_t kv_bits;
  const char* kv_format;
};
inline constexpr AppendFormat kAppendFormats[] = {{16, "integer"}, {8, "integer"}, {8, "fp8_e4m3"}, {4, "integer"}};

Fields fields_of(const AppendCase& c);

// Checks that the CUDA variant that the block size asks for passes the judge, and that every byte of its outputs, those
// of untouched slots included, is the one that cpu.naive leaves there.
void check_append(const AppendCase& c, const EditTensors& edit = {});

}  // namespace inferometer::test
