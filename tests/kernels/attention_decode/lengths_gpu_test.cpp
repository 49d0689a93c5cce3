// Lengths are the device's: a problem says how long its sequences may be, seq_lens how long they are. Where all may be
// equally long, copies begin before the kernel has read their lengths.
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[attention_decode][gpu][sanitizer]";

// `lengths` in place of the contexts of the problem; beyond them K, V and scales are NaN.
EditTensors shortened(const DecodeShape& c, const std::vector<std::int32_t>& lengths) {
  const auto beyond = [lengths](std::int64_t sequence, std::int64_t token) {
    return token >= lengths[static_cast<std::size_t>(sequence)];
  };
  TokenContents contents = random_contents(c);
  contents.value = [beyond](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    if (!is_query(element) && beyond(sequence, token)) return std::numeric_limits<float>::quiet_NaN();
    return random_value(sequence, token, element);
  };
  contents.scale = [beyond, scale = contents.scale](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    return beyond(sequence, token) ? std::numeric_limits<float>::quiet_NaN() : scale(sequence, token, element);
  };
  return [fill = fill_tokens(c, contents), lengths](std::vector<TensorSpec>& specs) {
    fill(specs);
    std::get<std::vector<std::int32_t>>(tensor_named(specs, "seq_lens").source) = lengths;
  };
}

TEST_CASE("decode kernels: sequences end where seq_lens says, before the context of the problem", kTags) {
  struct Case {
    std::vector<std::int64_t> contexts;
    std::vector<std::int32_t> lengths;
  };
  for (const Case& lengths : {Case{{1024}, {77}}, Case{{1024}, {1023}}, Case{{300, 300, 300}, {300, 0, 33}},
                              Case{{64, 64}, {1, 64}}, Case{{300, 200}, {129, 200}}})
    for (const std::int64_t block_size : {0, 16})
      for (const std::int64_t splits : {0, 2})
        for (const DecodeShape& c : in_every_format({.contexts = lengths.contexts,
                                    .q_heads = 32,
                                    .kv_heads = 8,
                                    .block_size = block_size,
                                    .splits = splits}))
          run_decode(c, shortened(c, lengths.lengths));
}

}  // namespace
}  // namespace inferometer::test
