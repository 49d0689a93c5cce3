// Negative controls: for every operator and dtype, outputs that are wrong in the ways kernels go wrong must fail its
// judge, and the right ones must pass it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::run_variant;

namespace {

using Outputs = std::map<std::string, std::vector<std::byte>>;

// One problem of one operator, with the outputs of its plainest variant.
struct Subject {
  std::string operator_name;
  std::string variant;
  Fields fields;
  std::string main;          // the output that is broken
  std::int64_t head_axis;    // of `main`; two of its slices are swapped
  std::string length_field;  // shortened by 64 it leaves the last 64 keys out; empty: `reduced` lacks a tile instead
  std::string reduced;       // an input [rows, k] of which 64 columns are set to 0
};

std::vector<Subject> subjects() {
  const auto n = [](std::int64_t value) { return Value(value); };
  std::vector<Subject> all;
  for (const char* type : {"f16", "bf16", "f32"}) {
    const Value dtype = std::string(type);
    all.push_back(
        {.operator_name = "attention_prefill",
         .variant = "cpu.naive",
         .fields = {{"q_heads", n(4)}, {"kv_heads", n(2)}, {"q_len", n(192)}, {"kv_len", n(1024)}, {"dtype", dtype}},
         .main = "o",
         .head_axis = 2,
         .length_field = "kv_len",
         .reduced = {}});
    all.push_back(
        {.operator_name = "attention_decode",
         .variant = "cpu.naive",
         .fields = {{"context", n(2048)}, {"q_heads", n(32)}, {"kv_heads", n(8)}, {"q_len", n(4)}, {"dtype", dtype}},
         .main = "o",
         .head_axis = 2,
         .length_field = "context",
         .reduced = {}});
    // One KV head and one sequence: a shorter cache is then the beginning of the longer one.
    const auto decode_with = [&](const Fields& fields) {
      Subject subject{.operator_name = "attention_decode",
                      .variant = "cpu.naive",
                      .fields = {{"context", n(2048)}, {"q_heads", n(32)}, {"q_len", n(4)}, {"dtype", dtype}},
                      .main = "o",
                      .head_axis = 2,
                      .length_field = "context",
                      .reduced = {}};
      subject.fields.insert(subject.fields.end(), fields.begin(), fields.end());
      all.push_back(subject);
    };
    decode_with({{"kv_bits", n(8)}});
    decode_with({{"kv_bits", n(8)}, {"kv_format", std::string("fp8_e4m3")}, {"kv_group_size", n(64)}});
    decode_with({{"kv_bits", n(4)}, {"kv_group_size", n(32)}});
    decode_with({{"window_left", n(511)}});
    decode_with({{"soft_cap", 20.0}});
    if (std::string_view(type) == "f32") continue;  // matmul stores f16 or bf16
    all.push_back({.operator_name = "matmul",
                   .variant = "cpu.eigen",
                   .fields = {{"m", n(192)}, {"n", n(128)}, {"k", n(2048)}, {"dtype", dtype}},
                   .main = "y",
                   .head_axis = 1,
                   .length_field = {},
                   .reduced = "x"});
    all.push_back({.operator_name = "matmul",
                   .variant = "cpu.eigen",
                   .fields = {{"m", n(192)}, {"n", n(128)}, {"k", n(2048)}, {"w_transposed", true}, {"dtype", dtype}},
                   .main = "y",
                   .head_axis = 1,
                   .length_field = {},
                   .reduced = "x"});
    const auto matmul_with = [&](const Fields& fields) {
      Subject subject{.operator_name = "matmul",
                      .variant = "cpu.dequantize",
                      .fields = {{"m", n(192)}, {"n", n(128)}, {"k", n(2048)}, {"dtype", dtype}},
                      .main = "y",
                      .head_axis = 1,
                      .length_field = {},
                      .reduced = "x"};
      subject.fields.insert(subject.fields.end(), fields.begin(), fields.end());
      all.push_back(subject);
    };
    matmul_with({{"bits", n(4)}, {"group_size", n(128)}});
    matmul_with({{"bits", n(4)}, {"group_size", n(32)}, {"symmetric", false}});
    matmul_with({{"bits", n(8)}});
    matmul_with({{"bits", n(8)}, {"group_size", n(64)}, {"symmetric", false}});
    matmul_with({{"bits", n(8)}, {"activation_bits", n(8)}});
  }
  return all;
}

class Judged {
 public:
  explicit Judged(const Subject& subject)
      : op_(*find_operator(subject.operator_name)),
        problem_(op_.parse(subject.fields)),
        specs_(op_.tensors(problem_.get())),
        expected_(op_.expect(problem_.get(), Inputs(specs_, 1), 1, 2)) {}

  Check of(const Outputs& outputs) const {
    std::vector<OutputView> views;
    for (const TensorSpec& spec : specs_)
      if (spec.role == Role::output) views.push_back({.spec = &spec, .data = outputs.at(spec.name).data()});
    return judge(
        views, expected_, [this](std::string_view name) { return op_.tolerance(problem_.get(), name); }, "", 2);
  }

  const TensorSpec& spec(std::string_view name) const {
    return *std::find_if(specs_.begin(), specs_.end(), [&](const TensorSpec& s) { return s.name == name; });
  }
  const std::vector<ExpectedSpan>& expected() const { return expected_; }

 private:
  const Operator& op_;
  std::shared_ptr<const void> problem_;
  std::vector<TensorSpec> specs_;
  std::vector<ExpectedSpan> expected_;
};

void store(Dtype dtype, float value, std::int64_t element, std::vector<std::byte>& data) {
  if (dtype == Dtype::f32) {
    std::memcpy(data.data() + 4 * element, &value, 4);
    return;
  }
  const std::uint16_t bits = dtype == Dtype::f16 ? f16_bits(value) : bf16_bits(value);
  std::memcpy(data.data() + 2 * element, &bits, 2);
}

void swap_slices(const TensorSpec& spec, std::int64_t axis, std::int64_t a, std::int64_t b,
                 std::vector<std::byte>& data) {
  auto inner = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < spec.shape.size(); ++i) inner *= spec.shape[i];
  const std::int64_t outer = std::ssize(data) / (inner * spec.shape[static_cast<std::size_t>(axis)]);
  for (std::int64_t i = 0; i < outer; ++i) {
    auto* row = data.data() + i * inner * spec.shape[static_cast<std::size_t>(axis)];
    std::swap_ranges(row + a * inner, row + (a + 1) * inner, row + b * inner);
  }
}

// The outputs of the same kernel when it leaves 64 terms out of every sum.
Outputs without_a_tile(const Subject& subject) {
  if (!subject.length_field.empty()) {
    Fields shorter = subject.fields;
    for (auto& [name, value] : shorter)
      if (name == subject.length_field) value = std::get<std::int64_t>(value) - 64;
    // Q of the whole problem: that of attention_decode depends on the newest key.
    const Operator& op = *find_operator(subject.operator_name);
    const std::vector<TensorSpec> whole = op.tensors(op.parse(subject.fields).get());
    return run_variant(subject.operator_name, subject.variant, shorter, 1,
                       [&](std::vector<TensorSpec>& specs) { specs.front().source = whole.front().source; })
        .raw;
  }
  return run_variant(subject.operator_name, subject.variant, subject.fields, 1,
                     [&](std::vector<TensorSpec>& specs) {
                       const Inputs inputs(specs, 1);
                       for (TensorSpec& spec : specs) {
                         if (spec.name != subject.reduced) continue;
                         std::vector<float> values = inputs.read(spec.name, 0, spec.elements());
                         for (std::int64_t i = 0; i < spec.elements(); ++i)
                           if (i % spec.shape[1] / 64 == 1) values[static_cast<std::size_t>(i)] = 0;
                         spec.source = [values](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
                       }
                     })
      .raw;
}

}  // namespace

TEST_CASE("judge: for every operator the right answer passes and wrong ones fail", "[judge][controls]") {
  for (const Subject& subject : subjects()) {
    CAPTURE(subject.operator_name, to_string(subject.fields));
    const Judged judged(subject);
    const TensorSpec& spec = judged.spec(subject.main);
    const test::VariantRun run = run_variant(subject.operator_name, subject.variant, subject.fields);
    const Outputs& right = run.raw;
    const Outputs stale = run_variant(subject.operator_name, subject.variant, subject.fields, 2).raw;
    INFO(run.check.reason);
    REQUIRE(run.check.passed);
    REQUIRE(judged.of(right).passed);

    // What a perfect kernel computes: the exact answer, rounded once.
    Outputs rounded = right;
    for (const ExpectedSpan& span : judged.expected())
      for (std::size_t i = 0; i < span.values.size(); ++i)
        store(judged.spec(span.tensor).dtype, static_cast<float>(span.values[i]),
              span.begin + static_cast<std::int64_t>(i), rounded.at(span.tensor));
    CHECK(judged.of(rounded).passed);

    const auto fails = [&](const char* control, const auto& change) {
      Outputs wrong = right;
      change(wrong.at(subject.main));
      CAPTURE(control);
      const Check check = judged.of(wrong);
      CHECK_FALSE(check.passed);
      CHECK_FALSE(check.reason.empty());
    };
    const std::int64_t row_bytes = spec.shape.back() * static_cast<std::int64_t>(dtype_bytes(spec.dtype));
    const std::vector<std::byte>& old = stale.at(subject.main);
    using Bytes = std::vector<std::byte>;
    fails("nothing written", [](Bytes& data) { std::fill(data.begin(), data.end(), std::byte{0xff}); });
    fails("zeros", [](Bytes& data) { std::fill(data.begin(), data.end(), std::byte{0}); });
    fails("stale", [&](Bytes& data) { data = old; });
    fails("64 rows of zeros",
          [&](Bytes& data) { std::fill(data.begin() + 64 * row_bytes, data.begin() + 128 * row_bytes, std::byte{0}); });
    fails("64 stale rows", [&](Bytes& data) {
      std::copy(old.begin() + 64 * row_bytes, old.begin() + 128 * row_bytes, data.begin() + 64 * row_bytes);
    });
    fails("swapped heads", [&](Bytes& data) { swap_slices(spec, subject.head_axis, 0, 1, data); });
    fails("scaled by 1.05", [&](Bytes& data) {
      const std::vector<float> values = to_floats(spec.dtype, data.data(), 0, spec.elements());
      for (std::int64_t i = 0; i < spec.elements(); ++i)
        store(spec.dtype, 1.05F * values[static_cast<std::size_t>(i)], i, data);
    });
    for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
      for (const std::int64_t element : {std::int64_t{0}, spec.elements() / 2 + 3, spec.elements() - 1})
        fails("one NaN or infinity", [&](Bytes& data) { store(spec.dtype, value, element, data); });

    const Check check = judged.of(without_a_tile(subject));
    CHECK_FALSE(check.passed);
  }
}

TEST_CASE("judge: for attention a wrong log-sum-exp fails though O is right", "[judge][controls]") {
  for (const Subject& subject : subjects()) {
    if (subject.main != "o") continue;
    CAPTURE(subject.operator_name, to_string(subject.fields));
    const Judged judged(subject);
    const Outputs right = run_variant(subject.operator_name, subject.variant, subject.fields).raw;
    const Outputs stale = run_variant(subject.operator_name, subject.variant, subject.fields, 2).raw;
    const auto fails = [&](const char* control, const std::vector<std::byte>& lse) {
      Outputs wrong = right;
      wrong.at("lse") = lse;
      CAPTURE(control);
      const Check check = judged.of(wrong);
      CHECK_FALSE(check.passed);
      CHECK(check.worst_tensor == "lse");
    };
    fails("stale", stale.at("lse"));
    std::vector<std::byte> lse = right.at("lse");
    const std::int64_t elements = judged.spec("lse").elements();
    store(Dtype::f32, -std::numeric_limits<float>::infinity(), elements / 2, lse);
    fails("-inf in one row", lse);
    // A hundredth of about 8 is 0.08; the scores of f16 inputs, where S may be held in f16, err by 5e-4 each.
    const std::vector<float> values = to_floats(Dtype::f32, right.at("lse").data(), 0, elements);
    for (std::int64_t i = 0; i < elements; ++i) store(Dtype::f32, 0.99F * values[static_cast<std::size_t>(i)], i, lse);
    fails("scaled by 0.99", lse);
  }
}

TEST_CASE("judge: a decode row that is finite where it sees no key fails, and so does the reverse",
          "[judge][controls]") {
  const Subject subject{.operator_name = "attention_decode",
                        .variant = "cpu.naive",
                        .fields = {{"batch", std::int64_t{3}},
                                   {"contexts", std::vector<std::int64_t>{7, 0, 300}},
                                   {"q_heads", std::int64_t{2}}},
                        .main = "o",
                        .head_axis = 2,
                        .length_field = {},
                        .reduced = {}};
  const Judged judged(subject);
  const Outputs right = run_variant(subject.operator_name, subject.variant, subject.fields).raw;
  REQUIRE(judged.of(right).passed);
  for (const std::int64_t element : {0, 2, 3, 5}) {  // of [3, 2, 1]; 2 and 3 belong to the empty sequence
    Outputs wrong = right;
    const bool empty = element / 2 == 1;
    store(Dtype::f32, empty ? -1e30F : -std::numeric_limits<float>::infinity(), element, wrong.at("lse"));
    CHECK_FALSE(judged.of(wrong).passed);
  }
  Outputs wrong = right;
  store(Dtype::f16, 1e-3F, 128 * 2 + 5, wrong.at("o"));  // not 0 where no key is seen
  CHECK_FALSE(judged.of(wrong).passed);
}
