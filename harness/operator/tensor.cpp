#include "harness/operator/tensor.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"
#include "harness/operator/parallel.hpp"
#include "harness/operator/stored.hpp"

namespace inferometer {
namespace {

constexpr std::uint8_t kAllBits = 0xff;

[[noreturn]] void refuse(const TensorSpec& spec, const std::string& sentence) {
  throw std::invalid_argument("tensor '" + spec.name + "': " + sentence);
}

void check_integers(const TensorSpec& spec, const std::vector<std::int32_t>& integers) {
  if (static_cast<std::int64_t>(integers.size()) != spec.elements())
    refuse(spec, "has " + std::to_string(spec.elements()) + " elements, but " + std::to_string(integers.size()) +
                     " integers");
}

void check_normal(const TensorSpec& spec, const Normal& normal) {
  if (normal.mean != 0 && !(std::abs(normal.mean) <= kMostMeanOverStddev * normal.stddev))
    refuse(spec, "the mean must be at most 400 standard deviations, got " + std::to_string(normal.mean) + " and " +
                     std::to_string(normal.stddev));
}

void check_source(const TensorSpec& spec) {
  const auto* const integers = std::get_if<std::vector<std::int32_t>>(&spec.source);
  const auto* const normal = std::get_if<Normal>(&spec.source);
  const bool bytes = std::holds_alternative<RandomBytes>(spec.source);
  if ((integers != nullptr) != (spec.dtype == Dtype::i32))
    refuse(spec, "integers fill i32 tensors, and nothing else does");
  if (spec.dtype == Dtype::u8 && normal != nullptr) refuse(spec, "random bytes or a function fill u8 tensors");
  if (spec.dtype != Dtype::u8 && bytes) refuse(spec, "random bytes fill u8 tensors only");
  if (const auto* computed = std::get_if<Computed>(&spec.source); computed != nullptr && computed->row_elements < 1)
    refuse(spec, "a row must have at least one element, got " + std::to_string(computed->row_elements));
  if (integers != nullptr) check_integers(spec, *integers);
  if (normal != nullptr) check_normal(spec, *normal);
}

std::string range_text(const ElementRange& range) {
  std::string once = "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
  if (range.repeats == 1) return once;
  return once + ", " + std::to_string(range.repeats) + " times " + std::to_string(range.stride) + " apart,";
}

bool fits(const ElementRange& range, std::int64_t elements) {
  if (range.begin < 0 || range.begin > range.end || range.end > elements || range.repeats < 1) return false;
  if (range.repeats == 1) return true;
  return range.stride > 0 && range.stride >= range.end - range.begin &&
         range.repeats - 1 <= (elements - range.end) / range.stride;
}

void fill_bytes(void* destination, std::int64_t bytes, std::uint8_t value, int threads) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t begin = 0; begin < bytes; begin += kChunk) {
    std::memset(static_cast<std::byte*>(destination) + begin, value,
                static_cast<std::size_t>(std::min(kChunk, bytes - begin)));
  }
}

template <Dtype kDtype>
void fill_normal(const TensorSpec& spec, const Normal& normal, std::uint64_t key, void* destination, int threads) {
  auto* const elements = static_cast<Stored<kDtype>*>(destination);
  const float scale = normal_scale(normal.stddev);
  const std::int32_t offset = normal_offset(normal.mean, normal.stddev);
  const std::int64_t count = spec.elements();
#pragma omp parallel for num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i)
    elements[i] = normal_element<kDtype>(key, static_cast<std::uint64_t>(i), scale, offset);
}

void fill_random_bytes(const TensorSpec& spec, const RandomBytes& source, std::uint64_t key, void* destination,
                       int threads) {
  const std::int64_t bytes = spec.bytes();
  const std::int64_t words = (bytes + 7) / 8;
#pragma omp parallel for num_threads(threads)
  for (std::int64_t i = 0; i < words; ++i) {
    const std::uint64_t word = random_word(key, static_cast<std::uint64_t>(i), source.without_e4m3_nan);
    std::memcpy(static_cast<std::byte*>(destination) + 8 * i, &word,
                static_cast<std::size_t>(std::min<std::int64_t>(8, bytes - 8 * i)));
  }
}

void fill_computed(const TensorSpec& spec, const Computed& computed, std::uint64_t seed, void* destination,
                   int threads) {
  const auto size = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  const std::int64_t elements = spec.elements();
  parallel_for((elements + computed.row_elements - 1) / computed.row_elements, threads, [&](std::int64_t row) {
    const std::int64_t begin = row * computed.row_elements;
    computed.fill(seed, begin, std::min(computed.row_elements, elements - begin),
                  static_cast<std::byte*>(destination) + begin * size);
  });
}

void fill_source(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination, int threads) {
  const std::uint64_t key = stream_key(seed, tensor);
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source)) {
    std::copy(integers->begin(), integers->end(), static_cast<std::int32_t*>(destination));
    return;
  }
  if (const auto* source = std::get_if<RandomBytes>(&spec.source))
    return fill_random_bytes(spec, *source, key, destination, threads);
  if (const auto* computed = std::get_if<Computed>(&spec.source))
    return fill_computed(spec, *computed, seed, destination, threads);
  with_dtype(spec.dtype, [&]<Dtype kDtype>() {
    if constexpr (kDtype != Dtype::i32) {
      if (const auto* normal = std::get_if<Normal>(&spec.source))
        return fill_normal<kDtype>(spec, *normal, key, destination, threads);
      // On one thread: a test's function need not be thread-safe.
      const auto& function = std::get<std::function<float(std::int64_t)>>(spec.source);
      auto* const elements = static_cast<Stored<kDtype>*>(destination);
      for (std::int64_t i = 0; i < spec.elements(); ++i) elements[i] = stored_element<kDtype>(function(i));
    }
  });
}

}  // namespace

std::int64_t TensorSpec::elements() const { return checked_product(name, std::span(shape)); }

std::int64_t TensorSpec::bytes() const {
  return checked_product(name, {elements(), static_cast<std::int64_t>(dtype_bytes(dtype))});
}

void check_spec(const TensorSpec& spec) {
  if (spec.role != Role::output) check_source(spec);
  if (spec.poison != kAllBits && spec.dtype != Dtype::u8) refuse(spec, "only u8 tensors choose their poison");
  for (const ElementRange& range : spec.unused) {
    if (!fits(range, spec.elements()))
      refuse(spec,
             "unused range " + range_text(range) + " is not within " + std::to_string(spec.elements()) + " elements");
  }
}

void fill_host(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination, int threads) {
  check_spec(spec);
  if (spec.role == Role::output) return fill_bytes(destination, spec.bytes(), spec.poison, threads);
  fill_source(spec, seed, tensor, destination, threads);
  const auto size = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  for (const ElementRange& range : spec.unused)
    for_each_part(range, 0, spec.elements(), [&](std::int64_t begin, std::int64_t end) {
      fill_bytes(static_cast<std::byte*>(destination) + begin * size, (end - begin) * size, kAllBits, 1);
    });
}

}  // namespace inferometer
