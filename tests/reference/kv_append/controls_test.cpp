// Negative controls: caches that are wrong in the ways append kernels go wrong must fail the judge.
#include <algorithm>
#include <cstring>
#include <functional>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::run_variant;

namespace {

using Bytes = std::vector<std::byte>;
using Outputs = std::map<std::string, Bytes>;

constexpr std::int64_t kTokens = 5;  // new ones, of one sequence that holds 6
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kHeadDim = 24;  // codes end within a row

struct Format {
  std::int64_t kv_bits;
  const char* kv_format;
};

class Judged {
 public:
  Judged(const Format& format, std::int64_t block_size)
      : fields_{{"context", std::int64_t{6}},
                {"new_tokens", kTokens},
                {"kv_heads", kHeads},
                {"head_dim", kHeadDim},
                {"block_size", block_size},
                {"kv_bits", format.kv_bits},
                {"kv_format", std::string(format.kv_format)}},
        op_(*find_operator("kv_append")),
        problem_(op_.parse(fields_)),
        specs_(op_.tensors(problem_.get())) {}

  Outputs run(std::uint64_t seed) const { return run_variant("kv_append", "cpu.naive", fields_, seed).raw; }

  Check check(const Outputs& outputs) const {
    std::vector<OutputView> views;
    for (const TensorSpec& spec : specs_)
      if (spec.role == Role::output) views.push_back({.spec = &spec, .data = outputs.at(spec.name).data()});
    const std::vector<ExpectedSpan> expected = op_.expect(problem_.get(), Inputs(specs_, 1), 1, 2);
    return judge(
        views, expected, [this](std::string_view name) { return op_.tolerance(problem_.get(), name); }, "", 2);
  }

  const TensorSpec& spec(const std::string& name) const {
    return *std::find_if(specs_.begin(), specs_.end(), [&](const TensorSpec& s) { return s.name == name; });
  }

  // Bytes of a row, and where the row of a token (of the whole sequence) and head begins in K and V, or in the scales.
  std::size_t row_bytes(const std::string& name) const {
    const TensorSpec& s = spec(name);
    const std::int64_t elements = name == "kv_scales" ? s.shape[3] * 2 : s.shape[3];
    return static_cast<std::size_t>(elements) * dtype_bytes(s.dtype);
  }
  std::size_t row_at(const std::string& name, std::int64_t token, std::int64_t head) const {
    const TensorSpec& s = spec(name);
    const bool tokens_first = s.shape[2] == kHeads && s.dtype != Dtype::u8 && name != "kv_scales";
    const std::int64_t slots = tokens_first ? s.shape[1] : s.shape[2];
    std::int64_t area = 0;
    if (s.shape[0] > 1) {
      const auto& table = std::get<std::vector<std::int32_t>>(spec("block_table").source);
      area = table[static_cast<std::size_t>(token / slots)];
    }
    const std::int64_t slot = token % slots;
    const std::int64_t row =
        tokens_first ? (area * slots + slot) * kHeads + head : (area * kHeads + head) * slots + slot;
    return static_cast<std::size_t>(row) * row_bytes(name);
  }
  std::byte poison(const std::string& name) const { return std::byte{spec(name).poison}; }

 private:
  Fields fields_;
  const Operator& op_;
  std::shared_ptr<const void> problem_;
  std::vector<TensorSpec> specs_;
};

}  // namespace

TEST_CASE("kv_append judge: the right cache passes and wrong ones fail", "[kv_append][controls]") {
  for (const Format& format : {Format{16, "integer"}, {8, "integer"}, {8, "fp8_e4m3"}, {4, "integer"}})
    for (const std::int64_t block_size : {0, 4}) {
      CAPTURE(format.kv_bits, format.kv_format, block_size);
      const Judged judged(format, block_size);
      const Outputs right = judged.run(1);
      const Outputs stale = judged.run(2);
      REQUIRE(judged.check(right).passed);

      const auto fails = [&](const std::string& control, const std::function<void(Outputs&)>& change) {
        Outputs wrong = right;
        change(wrong);
        CAPTURE(control);
        const Check check = judged.check(wrong);
        CHECK_FALSE(check.passed);
        CHECK_FALSE(check.reason.empty());
      };
      for (const auto& entry : right) {
        const std::string& name = entry.first;
        const std::size_t row = judged.row_bytes(name);
        const auto forget = [&](Outputs& outputs, std::int64_t token, std::int64_t head) {
          std::fill_n(outputs.at(name).begin() + static_cast<std::ptrdiff_t>(judged.row_at(name, token, head)), row,
                      judged.poison(name));
        };
        const auto copy_row = [&](Outputs& outputs, std::int64_t from, std::int64_t to, std::int64_t head) {
          std::memcpy(outputs.at(name).data() + judged.row_at(name, to, head),
                      right.at(name).data() + judged.row_at(name, from, head), row);
        };
        fails(name + ": nothing written",
              [&](Outputs& o) { std::fill(o.at(name).begin(), o.at(name).end(), judged.poison(name)); });
        fails(name + ": zeros", [&](Outputs& o) { std::fill(o.at(name).begin(), o.at(name).end(), std::byte{0}); });
        fails(name + ": stale", [&](Outputs& o) { o.at(name) = stale.at(name); });
        fails(name + ": the last token forgotten", [&](Outputs& o) {
          for (std::int64_t head = 0; head < kHeads; ++head) forget(o, 6 + kTokens - 1, head);
        });
        fails(name + ": the last head of the first token forgotten", [&](Outputs& o) { forget(o, 6, kHeads - 1); });
        fails(name + ": the token before the first overwritten", [&](Outputs& o) { copy_row(o, 6, 5, 0); });
        fails(name + ": a token in its neighbour's slot", [&](Outputs& o) { copy_row(o, 8, 7, 1); });
        fails(name + ": two heads exchanged", [&](Outputs& o) {
          std::swap_ranges(o.at(name).begin() + static_cast<std::ptrdiff_t>(judged.row_at(name, 7, 0)),
                           o.at(name).begin() + static_cast<std::ptrdiff_t>(judged.row_at(name, 7, 0) + row),
                           o.at(name).begin() + static_cast<std::ptrdiff_t>(judged.row_at(name, 7, 1)));
        });
        fails(name + ": one bit", [&](Outputs& o) { o.at(name)[judged.row_at(name, 9, 1) + 1] ^= std::byte{1}; });
      }
      fails("K and V exchanged", [](Outputs& o) { std::swap(o.at("k"), o.at("v")); });
      if (format.kv_bits == 16) continue;
      fails("scales of K and V exchanged", [&](Outputs& o) {
        Bytes& scales = o.at("kv_scales");
        const std::size_t at = judged.row_at("kv_scales", 8, 0);
        std::swap_ranges(scales.begin() + static_cast<std::ptrdiff_t>(at),
                         scales.begin() + static_cast<std::ptrdiff_t>(at + 2),
                         scales.begin() + static_cast<std::ptrdiff_t>(at + 2));
      });
      fails("the padding of a row written",
            [&](Outputs& o) { o.at("k")[judged.row_at("k", 7, 0) + judged.row_bytes("k") - 1] = std::byte{0}; });
      if (format.kv_bits != 4) continue;
      fails("nibbles exchanged", [&](Outputs& o) {
        for (std::int64_t token = 6; token < 6 + kTokens; ++token)
          for (std::size_t i = 0; i < kHeadDim / 2; ++i) {
            std::byte& code = o.at("v")[judged.row_at("v", token, 0) + i];
            code = code << 4 | code >> 4;
          }
      });
    }
}
