// The arithmetic of the append kernels over every number of both types, and offsets past 32 bits.
#include <algorithm>
#include <cstring>
#include <map>

#include "harness/measure/device.hpp"
#include "harness/operator/generate.hpp"
#include "tests/kernels/kv_append/append_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[kv_append][gpu]";

float value_of(const std::string& dtype, std::uint32_t bits) {
  return dtype == "f16" ? f16_value(static_cast<std::uint16_t>(bits)) : bf16_value(static_cast<std::uint16_t>(bits));
}

// Bits of infinity: the count of finite magnitudes.
std::uint32_t finite_magnitudes(const std::string& dtype) { return dtype == "f16" ? 0x7c00 : 0x7f80; }

EditTensors fill_new(const std::function<float(std::int64_t)>& element) {
  return [element](std::vector<TensorSpec>& specs) {
    for (TensorSpec& spec : specs) {
      const std::int64_t shift = spec.name == "v_new" ? 12345 : 0;
      if (spec.name == "k_new" || spec.name == "v_new")
        spec.source = [element, shift](std::int64_t i) { return element(i + shift); };
    }
  };
}

void check_formats(const std::string& dtype, std::int64_t group, std::int64_t tokens, const EditTensors& edit) {
  for (const auto& [kv_bits, kv_format] : kAppendFormats) {
    if (kv_bits == 16) continue;
    check_append({.new_tokens = tokens,
                  .kv_heads = 1,
                  .head_dim = 128,
                  .kv_bits = kv_bits,
                  .kv_format = kv_format,
                  .kv_group_size = group,
                  .dtype = dtype},
                 edit);
  }
}

TEST_CASE("append kernels: every finite number, among neighbours of its size and among any others", kTags) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const std::uint32_t count = finite_magnitudes(dtype);
    const auto number = [=](std::uint64_t n) {  // signs alternate, so that none is a group's alone
      const float magnitude = value_of(dtype, static_cast<std::uint32_t>(n / 2 % count));
      return (n & 1U) == 0 ? magnitude : -magnitude;
    };
    check_formats(dtype, 32, 2 * count / 128 + 1,
                  fill_new([=](std::int64_t i) { return number(static_cast<std::uint64_t>(i)); }));
    check_formats(dtype, 0, 2 * count / 128 + 1,
                  fill_new([=](std::int64_t i) { return number(mix_bits(static_cast<std::uint64_t>(i))); }));
  }
}

TEST_CASE("append kernels: every magnitude as the greatest of a group, and so every scale", kTags) {
  for (const std::string dtype : {"f16", "bf16"}) {
    const std::uint32_t count = finite_magnitudes(dtype);
    // Group g's greatest is magnitude g; the others are fractions of it, half-way steps of int8 and int4 among them.
    const auto element = [=](std::int64_t i) {
      const float greatest = value_of(dtype, static_cast<std::uint32_t>(i / 32 % count));
      const std::int64_t d = i % 32;
      if (d == i / 32 % 32) return -greatest;
      const float part = d < 16 ? greatest * static_cast<float>(2 * d - 15) / 14 / 2
                                : greatest * static_cast<float>(mix_bits(static_cast<std::uint64_t>(i)) % 509) / 508;
      return dtype == "f16" ? f16_value(f16_bits(part)) : bf16_value(bf16_bits(part));
    };
    check_formats(dtype, 32, count / 4 + 1, fill_new(element));
  }
}

TEST_CASE("append kernels: zeros of both signs, equal values, one value among zeros", kTags) {
  const auto patterns = [](std::int64_t i) {
    switch (i / 128 % 5) {
      case 0: return 0.0F;
      case 1: return -0.0F;
      case 2: return 0.5F;
      case 3: return -0.5F;
      default: return i % 128 == 77 ? 3.0F : (i % 2 == 0 ? 0.0F : -0.0F);
    }
  };
  for (const std::string dtype : {"f16", "bf16"})
    for (const std::int64_t group : {0, 32}) check_formats(dtype, group, 20, fill_new(patterns));
}

// A pool of more than 2^32 elements of K and of V each (17 GB with kv_bits 16), of which a few blocks are written. What
// lies at the expected places is compared; where an offset cut to 32 or 31 bits would have led, zeros must have stayed.
class HugePool {
 public:
  HugePool(const AppendCase& c, std::int64_t blocks, std::vector<std::int32_t> table)
      : op_(*find_operator("kv_append")), problem_(op_.parse(fields_of(c))), specs_(op_.tensors(problem_.get())) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
      TensorSpec& spec = specs_[i];
      if (spec.name == "block_table") spec.source = table;
      if (spec.role == Role::output) {
        spec.shape[0] = blocks;
        spec.unused.clear();
      }
      const auto bytes = static_cast<std::size_t>(spec.bytes());
      memory_.emplace_back(device_->allocate(bytes), [this](void* memory) { device_->release(memory); });
      pointers_.push_back(memory_.back().get());
      if (spec.role == Role::output) {
        device_->set_zero(pointers_.back(), bytes);
      } else {
        device_->fill(spec, 1, i, pointers_.back());
      }
    }
  }

  void run() {
    const Variant& variant = *find_variant("kv_append", "cuda.paged");
    REQUIRE_FALSE(variant.unsupported(problem_.get()).has_value());
    variant.run(problem_.get(), op_.bind(problem_.get(), pointers_).get(), device_->launch());
    device_->synchronize();
  }

  // Elements of an output, as floats.
  std::vector<float> read(const std::string& name, std::int64_t begin, std::int64_t count) {
    const auto at = static_cast<std::size_t>(
        std::find_if(specs_.begin(), specs_.end(), [&](const TensorSpec& spec) { return spec.name == name; }) -
        specs_.begin());
    const std::size_t size = dtype_bytes(specs_[at].dtype);
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * size);
    device_->copy_to_host(bytes.data(),
                          static_cast<const std::byte*>(pointers_[at]) + static_cast<std::size_t>(begin) * size,
                          bytes.size());
    return to_floats(specs_[at].dtype, bytes.data(), 0, count);
  }

  std::vector<ExpectedSpan> expected() const { return op_.expect(problem_.get(), Inputs(specs_, 1), 1, 4); }

 private:
  const Operator& op_;
  std::shared_ptr<const void> problem_;
  std::vector<TensorSpec> specs_;
  std::unique_ptr<Device> device_ = gpu();
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<void*> pointers_;
};

void check_huge(const AppendCase& c, std::int64_t row_elements) {
  const std::int64_t block_elements = c.block_size * c.kv_heads * row_elements;
  const std::int64_t past_31 = (std::int64_t{1} << 31) / block_elements;
  // Blocks 0 and 1, where cut offsets lead, stay free.
  const std::vector<std::int64_t> blocks = {2 * past_31 + 1, past_31 - 1, past_31, 2 * past_31, past_31 + 1};
  HugePool pool(c, 2 * past_31 + 2, {blocks.begin(), blocks.end()});
  pool.run();
  std::map<std::string, std::int64_t> compared;
  for (const ExpectedSpan& span : pool.expected()) {
    const std::vector<float> values = pool.read(span.tensor, span.begin, std::ssize(span.values));
    CHECK(std::equal(values.begin(), values.end(), span.values.begin(), span.values.end()));
    if (span.tensor == "kv_scales") continue;
    for (const int bits : {31, 32}) {
      const std::int64_t cut = span.begin & ((std::int64_t{1} << bits) - 1);
      if (cut == span.begin) continue;
      ++compared[span.tensor];
      const std::vector<float> others = pool.read(span.tensor, cut, std::ssize(span.values));
      CHECK(std::all_of(others.begin(), others.end(), [](float value) { return value == 0; }));
    }
  }
  CHECK(compared["k"] > 0);
  CHECK(compared["v"] > 0);
}

TEST_CASE("append kernels: block offsets past 2^31 and 2^32 elements are right", kTags) {
  for (const auto& [kv_bits, kv_format] : kAppendFormats) {
    const AppendCase c{.contexts = {3},
                       .new_tokens = 5 * 16 - 3,
                       .kv_heads = 8,
                       .head_dim = 256,
                       .block_size = 16,
                       .kv_bits = kv_bits,
                       .kv_format = kv_format};
    INFO(to_string(fields_of(c)));
    try {
      check_huge(c, kv_bits == 4 ? 128 : 256);
    } catch (const OutOfMemory& error) {
      WARN("not tested: " << error.what());
    }
  }
}

}  // namespace
}  // namespace inferometer::test
