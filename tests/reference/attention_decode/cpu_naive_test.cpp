// attention_decode / cpu.naive over the shapes and contents that broke other people's kernels.
#include <cmath>
#include <limits>

#include "tests/reference/attention_decode/naive_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::vector<std::int64_t> list(std::initializer_list<std::int64_t> values) { return values; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("attention_decode cpu.naive: agrees with double precision in every dtype, contiguous and paged",
          "[attention_decode][reference]") {
  for (const char* dtype : {"f16", "bf16", "f32"})
    for (const std::int64_t block_size : {0, 16})
      check_passes({.contexts = list({1000, 31, 257}), .q_len = 3, .block_size = block_size, .dtype = dtype});
}

TEST_CASE("attention_decode cpu.naive: lengths around the edges of blocks of every size agree",
          "[attention_decode][reference]") {
  for (const std::int64_t block : {1, 16, 64, 128, 256, 512})
    check_passes(
        {.contexts = list({1, std::max<std::int64_t>(1, block - 1), block, block + 1, 1000}), .block_size = block});
}

TEST_CASE("attention_decode cpu.naive: every head_dim that is a multiple of 8 works", "[attention_decode][reference]") {
  for (const std::int64_t head_dim : {8, 64, 80, 96, 112, 128, 192, 256})
    check_passes({.contexts = list({65}), .head_dim = head_dim, .block_size = 16});
}

TEST_CASE("attention_decode cpu.naive: every number of query heads per KV head works",
          "[attention_decode][reference]") {
  for (const std::int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 32, 64})
    for (const std::int64_t kv_heads : {1, 3, 4})
      for (const std::int64_t q_len : {1, 3})
        check_passes({.contexts = list({70, 3}), .q_len = q_len, .q_heads = group * kv_heads, .kv_heads = kv_heads});
}

TEST_CASE("attention_decode cpu.naive: the same keys in blocks or in a row give the same answer",
          "[attention_decode][reference]") {
  // Both caches hold the value that token t of sequence b, KV head h, element e has here; Q is random.
  const auto content = [](std::int64_t b, std::int64_t token, std::int64_t within) {
    return std::sin(static_cast<float>(b * 7919 + token * 131 + within * 17 + 1));
  };
  DecodeShape shape{.contexts = list({1, 15, 16, 17, 1000}), .q_len = 2};
  const std::int64_t row = shape.kv_heads * shape.head_dim;
  const std::int64_t longest = 1000;
  const auto fill_contiguous = [&](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "q").source = Normal{};
    for (const char* name : {"k", "v"})
      tensor_named(specs, name).source = [=](std::int64_t i) {
        return content(i / row / longest, i / row % longest, i % row + (*name == 'v' ? 5 : 0));
      };
  };
  const VariantRun contiguous = run_naive(shape, fill_contiguous);
  CHECK(contiguous.check.passed);
  for (const std::int64_t block_size : {1, 16, 64, 128, 256, 512}) {
    CAPTURE(block_size);
    shape.block_size = block_size;
    const VariantRun paged = run_naive(shape, [&](std::vector<TensorSpec>& specs) {
      tensor_named(specs, "q").source = Normal{};
      const auto table = std::get<std::vector<std::int32_t>>(tensor_named(specs, "block_table").source);
      const std::int64_t columns = (longest + block_size - 1) / block_size;
      std::vector<std::int64_t> entry_of(static_cast<std::size_t>(tensor_named(specs, "k").shape[0]), 0);
      for (std::size_t entry = 0; entry < table.size(); ++entry)
        if (table[entry] >= 0) entry_of[static_cast<std::size_t>(table[entry])] = static_cast<std::int64_t>(entry);
      for (const char* name : {"k", "v"})
        tensor_named(specs, name).source = [=](std::int64_t i) {
          const std::int64_t entry = entry_of[static_cast<std::size_t>(i / row / block_size)];
          return content(entry / columns, entry % columns * block_size + i / row % block_size,
                         i % row + (*name == 'v' ? 5 : 0));
        };
    });
    CHECK(paged.check.passed);
    // Sums run over other parts of the context: f32 errors, and then f16 may round to the neighbour, 2^-10 of it.
    for (std::size_t i = 0; i < paged.outputs.at("o").size(); ++i)
      REQUIRE(paged.outputs.at("o")[i] == Approx(contiguous.outputs.at("o")[i]).epsilon(0x1p-9).margin(1e-5));
    for (std::size_t i = 0; i < paged.outputs.at("lse").size(); ++i)
      REQUIRE(paged.outputs.at("lse")[i] == Approx(contiguous.outputs.at("lse")[i]).epsilon(1e-5));
  }
}

TEST_CASE("attention_decode cpu.naive: an empty sequence gives 0 and -inf, its neighbours what they give alone",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 16}) {
    CAPTURE(block_size);
    const VariantRun batch = run_naive({.contexts = list({300, 0, 7}), .block_size = block_size});
    CHECK(batch.check.passed);
    const std::size_t row = 4 * 64;
    for (std::size_t i = 0; i < row; ++i) REQUIRE(batch.outputs.at("o")[row + i] == 0);
    for (std::size_t h = 0; h < 4; ++h) CHECK(batch.outputs.at("lse")[4 + h] == -kInfinity);
    if (block_size != 0) continue;  // blocks of the batch stand elsewhere than those of one sequence
    const VariantRun alone = run_naive({.contexts = list({300})});
    for (std::size_t i = 0; i < row; ++i) REQUIRE(batch.outputs.at("o")[i] == alone.outputs.at("o")[i]);
    for (std::size_t h = 0; h < 4; ++h) CHECK(batch.outputs.at("lse")[h] == alone.outputs.at("lse")[h]);
  }
}

TEST_CASE("attention_decode cpu.naive: with more queries than tokens the first queries see nothing",
          "[attention_decode][reference]") {
  const VariantRun run = run_naive({.contexts = list({2, 9}), .q_len = 4, .q_heads = 1, .kv_heads = 1, .head_dim = 64});
  CHECK(run.check.passed);
  for (std::size_t i = 0; i < 2 * 64; ++i) REQUIRE(run.outputs.at("o")[i] == 0);
  CHECK(run.outputs.at("lse")[0] == -kInfinity);
  CHECK(run.outputs.at("lse")[1] == -kInfinity);
  CHECK(std::isfinite(run.outputs.at("lse")[2]));
  // Query 2 sees one key: O is its value and the log-sum-exp its score, so the value is f16 exactly.
  const VariantRun one = run_naive({.contexts = list({1, 9}), .q_len = 4, .q_heads = 1, .kv_heads = 1, .head_dim = 64});
  CHECK(one.check.passed);
  for (std::size_t i = 0; i < 64; ++i) REQUIRE(run.outputs.at("o")[2 * 64 + i] == one.outputs.at("o")[3 * 64 + i]);
}

TEST_CASE("attention_decode cpu.naive: the last query sees all keys, the one before it one less",
          "[attention_decode][reference]") {
  // Every value is its token's number and all keys are 0: O is the mean of the numbers seen, exact in f16.
  const VariantRun run = check_passes(
      {.contexts = list({5}), .q_len = 2, .q_heads = 1, .kv_heads = 1}, [](std::vector<TensorSpec>& specs) {
        tensor_named(specs, "k").source = [](std::int64_t) { return 0.0F; };
        tensor_named(specs, "v").source = [](std::int64_t i) { return static_cast<float>(i / 64); };
      });
  for (std::size_t i = 0; i < 64; ++i) {
    REQUIRE(run.outputs.at("o")[i] == 1.5F);       // keys 0-3
    REQUIRE(run.outputs.at("o")[64 + i] == 2.0F);  // keys 0-4
  }
  CHECK(run.outputs.at("lse")[0] == Approx(std::log(4.0)));
  CHECK(run.outputs.at("lse")[1] == Approx(std::log(5.0)));
}

TEST_CASE("attention_decode cpu.naive: the number of splits is no part of the question",
          "[attention_decode][reference]") {
  for (const std::int64_t head_dim : {64, 128}) {
    const VariantRun once = check_passes({.contexts = list({257}), .head_dim = head_dim, .block_size = 64});
    for (const std::int64_t splits : {1, 2, 5, 8})
      CHECK(run_naive({.contexts = list({257}), .head_dim = head_dim, .block_size = 64, .splits = splits}).raw ==
            once.raw);
  }
}

TEST_CASE("attention_decode cpu.naive: K and V may stand at strides of their own", "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 16}) {
    for (const char* dtype : {"f16", "f32"}) {
      check_passes({.contexts = list({33, 0, 16}),
                    .q_len = 2,
                    .block_size = block_size,
                    .k_row_stride = 2 * 64 + 8,
                    .v_row_stride = 3 * 64,
                    .dtype = dtype});
    }
  }
  // The same numbers, padded or not, give the same bits; what pads them is NaN.
  const auto content = [](std::int64_t stride) {
    return [stride](std::int64_t i) { return std::sin(static_cast<float>(i / stride * 131 + i % stride * 17)); };
  };
  const auto filled = [&](std::int64_t k_stride, std::int64_t v_stride) {
    return run_naive({.contexts = list({40, 7}), .k_row_stride = k_stride, .v_row_stride = v_stride},
                     [&](std::vector<TensorSpec>& specs) {
                       tensor_named(specs, "q").source = content(64);
                       tensor_named(specs, "k").source = content(k_stride);
                       tensor_named(specs, "v").source = content(v_stride);
                     });
  };
  const VariantRun dense = filled(128, 128);
  CHECK(dense.check.passed);
  CHECK(filled(136, 256).raw == dense.raw);
}

TEST_CASE("attention_decode cpu.naive: NaN and infinity in unused slots and free blocks change nothing",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 4}) {
    CAPTURE(block_size);
    const DecodeShape shape{.contexts = list({32, 64, 96, 48, 13, 128}), .block_size = block_size};
    const VariantRun clean = run_naive(shape, [](std::vector<TensorSpec>& specs) {
      for (TensorSpec& spec : specs) spec.unused.clear();
    });
    const VariantRun nan = run_naive(shape);
    CHECK(nan.check.passed);
    CHECK(nan.raw == clean.raw);
    for (const char* name : {"k", "v"}) {
      const VariantRun infinite = run_naive(shape, [&](std::vector<TensorSpec>& specs) {
        TensorSpec& spec = tensor_named(specs, name);
        const Inputs inputs(specs, 1);
        std::vector<float> values = inputs.read(name, 0, spec.elements());
        for (const ElementRange& range : spec.unused)
          for_each_part(range, 0, spec.elements(), [&](std::int64_t begin, std::int64_t end) {
            std::fill(values.begin() + begin, values.begin() + end, kInfinity);
          });
        spec.unused.clear();
        spec.source = [values](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
      });
      CHECK(infinite.raw == clean.raw);
    }
  }
}

TEST_CASE("attention_decode cpu.naive: huge equal inputs give V, not NaN", "[attention_decode][reference]") {
  DecodeShape shape{.contexts = list({128}), .dtype = "bf16"};
  const VariantRun run = run_naive(shape, [](std::vector<TensorSpec>& specs) {
    for (const char* name : {"q", "k", "v"}) tensor_named(specs, name).source = [](std::int64_t) { return 133120.0F; };
  });
  CHECK(run.check.passed);
  for (const float o : run.outputs.at("o")) REQUIRE(o == 133120.0F);
}

TEST_CASE("attention_decode cpu.naive: very negative scores are a softmax like any other",
          "[attention_decode][reference]") {
  DecodeShape shape{.contexts = list({100}), .q_heads = 1, .kv_heads = 1, .dtype = "bf16"};
  const VariantRun run = run_naive(shape, [](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "q").source = [](std::int64_t) { return 128.0F; };
    tensor_named(specs, "k").source = [](std::int64_t) { return -96.0F; };  // scores 64 * 128 * -96 / 8 = -98304
    tensor_named(specs, "v").source = [](std::int64_t i) { return static_cast<float>(i / 64 % 2); };
  });
  CHECK(run.check.passed);
  CHECK(run.outputs.at("lse")[0] == Approx(-98304.0 + std::log(100.0)).epsilon(1e-7));
  for (const float o : run.outputs.at("o")) REQUIRE(o == 0.5F);
}

TEST_CASE("attention_decode: elements of K and V are addressed in 64 bits", "[attention_decode][reference]") {
  // Contiguous, of 2^20 tokens of 3 x 256 elements: more than 2^31 elements in four sequences; nothing is allocated.
  const Operator& op = *find_operator("attention_decode");
  const auto problem = op.parse({{"batch", std::int64_t{8}},
                                 {"context", std::int64_t{1} << 20},
                                 {"q_heads", std::int64_t{3}},
                                 {"kv_heads", std::int64_t{3}},
                                 {"head_dim", std::int64_t{256}},
                                 {"block_size", std::int64_t{16}}});
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  const Inputs inputs(specs, 1);
  const std::int64_t elements = specs[1].elements();
  REQUIRE(elements > (std::int64_t{1} << 32));
  const std::int64_t last_block =
      *std::max_element(inputs.integers("block_table").begin(), inputs.integers("block_table").end());
  CHECK(last_block > 65536);
  CHECK(inputs.read("k", elements - 256, 256).size() == 256);
  CHECK_THROWS_AS(inputs.read("k", elements - 255, 256), std::out_of_range);
}
