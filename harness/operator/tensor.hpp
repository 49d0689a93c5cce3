// The tensors of a row: what to allocate, how to fill it, and how a judge reads it back. Host only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "harness/operator/element_range.hpp"

namespace inferometer {

// Under which name the memory of a tensor stands in a results row. An input or an output, never both, for outputs are
// poisoned before a launch: what a kernel updates is an input, and what becomes of it an output with its own memory.
enum class Role : std::uint8_t { input, output, weights, kv_pool };

// Approximately normal values (generate.hpp), rounded to the tensor's dtype; f16, bf16 and f32 tensors. They stay
// within 3.47 standard deviations of the mean, so that a mean of 4 makes them positive. |mean| <= 400 stddev.
struct Normal {
  double stddev = 1.0;
  double mean = 0;
};

// Each byte is any of the 256 with equal chance: u8 tensors, such as the codes of a quantised cache.
struct RandomBytes {
  bool without_e4m3_nan = false;  // for codes that are FP8 E4M3 numbers
};

// Elements that follow from the seed in the operator's own way, such as the codes of quantised weights. `fill` writes
// elements [begin, begin + count) as the tensor stores them, the same for any cut into ranges; thread-safe. Ranges of
// whole rows are the cheapest.
struct Computed {
  std::function<void(std::uint64_t seed, std::int64_t begin, std::int64_t count, void* elements)> fill;
  std::int64_t row_elements = 1;
};

struct TensorSpec {
  std::string name;
  Role role = Role::input;
  Dtype dtype = Dtype::f16;
  std::vector<std::int64_t> shape;
  // Normal, RandomBytes: random. Integers: the content of an i32 tensor. Function: element by index, for tests of
  // chosen values. Computed: by the operator. Outputs ignore it.
  std::variant<Normal, std::vector<std::int32_t>, std::function<float(std::int64_t)>, RandomBytes, Computed> source =
      Normal{};
  // Elements that no correct kernel may use (free cache slots); all their bits are set, NaN in every float type. Of an
  // output: elements that are no part of the answer and must keep the poison.
  std::vector<ElementRange> unused = {};
  // What every byte of an output holds before a launch. All bits set is NaN in every float type, and no other byte is
  // allowed there; a u8 output chooses one that its answer never holds.
  std::uint8_t poison = 0xff;

  std::int64_t elements() const;
  std::int64_t bytes() const;
};

// Throws std::invalid_argument, naming the tensor, for a source, an unused range or a poison that does not fit it.
void check_spec(const TensorSpec& spec);

// Fills host memory of `spec.bytes()` as its source and `unused` say. Multithreaded. Outputs are poisoned.
void fill_host(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination, int threads);

// The judge's view of a row's inputs: regenerated from the seed, never read from memory a kernel could write.
class Inputs {
 public:
  Inputs(std::vector<TensorSpec> specs, std::uint64_t seed);

  const std::vector<TensorSpec>& specs() const { return specs_; }
  std::uint64_t seed() const { return seed_; }
  std::size_t index_of(std::string_view name) const;  // throws std::out_of_range

  // `count` elements from `begin`, converted (exactly) to float; unused ones of float types are NaN. Thread-safe.
  std::vector<float> read(std::string_view name, std::int64_t begin, std::int64_t count) const;
  const std::vector<std::int32_t>& integers(std::string_view name) const;

 private:
  std::vector<TensorSpec> specs_;
  std::uint64_t seed_;
};

// Converts `count` elements of raw tensor memory from element `begin` to float.
std::vector<float> to_floats(Dtype dtype, const void* data, std::int64_t begin, std::int64_t count);

}  // namespace inferometer
