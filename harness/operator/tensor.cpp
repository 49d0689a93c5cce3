#include "harness/operator/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

constexpr int kAllBits = 0xff;  // a byte of it: NaN in every float type, -1 in integers

[[noreturn]] void refuse(const TensorSpec& spec, const std::string& sentence) {
  throw std::invalid_argument("tensor '" + spec.name + "': " + sentence);
}

template <Dtype kDtype>
using Stored = std::conditional_t<dtype_bytes(kDtype) == 2, std::uint16_t,
                                  std::conditional_t<kDtype == Dtype::i32, std::int32_t, float>>;

template <Dtype kDtype>
float stored_value(Stored<kDtype> stored) {
  if constexpr (kDtype == Dtype::f16) return f16_value(stored);
  if constexpr (kDtype == Dtype::bf16) return bf16_value(stored);
  return static_cast<float>(stored);
}

// Calls body.template operator()<kDtype>() for the dtype's own constant.
template <class Body>
void with_dtype(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::f16: return body.template operator()<Dtype::f16>();
    case Dtype::bf16: return body.template operator()<Dtype::bf16>();
    case Dtype::f32: return body.template operator()<Dtype::f32>();
    case Dtype::i32: return body.template operator()<Dtype::i32>();
  }
}

// Calls write(i, element begin + i as stored) for i in [0, count).
template <Dtype kDtype, class Write>
void generate_normal(const Normal& normal, std::uint64_t seed, std::uint64_t tensor, std::int64_t begin,
                     std::int64_t count, int threads, const Write& write) {
  const std::uint64_t key = stream_key(seed, tensor);
  const float scale = normal_scale(normal.stddev);
  const auto write_one = [&](std::int64_t i) {
    write(i, normal_element<kDtype>(key, static_cast<std::uint64_t>(begin + i), scale));
  };
  if (threads <= 1) {  // judges read from within their own parallel loops: no region of one thread there
    for (std::int64_t i = 0; i < count; ++i) write_one(i);
    return;
  }
#pragma omp parallel for num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) write_one(i);
}

void set_all_bits(void* destination, std::int64_t bytes, int threads) {
  constexpr std::int64_t kChunk = std::int64_t{1} << 20;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (std::int64_t begin = 0; begin < bytes; begin += kChunk) {
    std::memset(static_cast<std::byte*>(destination) + begin, kAllBits,
                static_cast<std::size_t>(std::min(kChunk, bytes - begin)));
  }
}

void check_source(const TensorSpec& spec) {
  const bool integers = std::holds_alternative<std::vector<std::int32_t>>(spec.source);
  if (spec.role == Role::output) return;
  if (integers != (spec.dtype == Dtype::i32)) refuse(spec, "integers fill i32 tensors, and nothing else does");
  if (!integers) return;
  const auto given = static_cast<std::int64_t>(std::get<std::vector<std::int32_t>>(spec.source).size());
  if (given != spec.elements())
    refuse(spec, "has " + std::to_string(spec.elements()) + " elements, but " + std::to_string(given) + " integers");
}

void check_unused(const TensorSpec& spec) {
  for (const ElementRange& range : spec.unused) {
    if (range.begin < 0 || range.begin > range.end || range.end > spec.elements()) {
      refuse(spec, "unused range [" + std::to_string(range.begin) + ", " + std::to_string(range.end) +
                       ") is not within " + std::to_string(spec.elements()) + " elements");
    }
  }
}

}  // namespace

std::int64_t TensorSpec::elements() const { return checked_product(name, std::span(shape)); }

std::int64_t TensorSpec::bytes() const {
  return checked_product(name, {elements(), static_cast<std::int64_t>(dtype_bytes(dtype))});
}

void fill_host(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination, int threads) {
  if (spec.role == Role::output) return set_all_bits(destination, spec.bytes(), threads);
  check_source(spec);
  check_unused(spec);
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source)) {
    std::copy(integers->begin(), integers->end(), static_cast<std::int32_t*>(destination));
  } else {
    with_dtype(spec.dtype, [&]<Dtype kDtype>() {
      if constexpr (kDtype != Dtype::i32) {
        auto* elements = static_cast<Stored<kDtype>*>(destination);
        if (const auto* normal = std::get_if<Normal>(&spec.source)) {
          generate_normal<kDtype>(*normal, seed, tensor, 0, spec.elements(), threads,
                                  [elements](std::int64_t i, Stored<kDtype> element) { elements[i] = element; });
        } else {  // on one thread: a test's function need not be thread-safe
          const auto& function = std::get<std::function<float(std::int64_t)>>(spec.source);
          for (std::int64_t i = 0; i < spec.elements(); ++i) elements[i] = stored_element<kDtype>(function(i));
        }
      }
    });
  }
  const auto size = static_cast<std::int64_t>(dtype_bytes(spec.dtype));
  for (const ElementRange& range : spec.unused)
    set_all_bits(static_cast<std::byte*>(destination) + range.begin * size, (range.end - range.begin) * size, 1);
}

Inputs::Inputs(std::vector<TensorSpec> specs, std::uint64_t seed) : specs_(std::move(specs)), seed_(seed) {
  for (const TensorSpec& spec : specs_) {
    check_source(spec);
    check_unused(spec);
  }
}

std::size_t Inputs::index_of(std::string_view name) const {
  const auto found = std::find_if(specs_.begin(), specs_.end(), [name](const TensorSpec& s) { return s.name == name; });
  if (found == specs_.end()) throw std::out_of_range("no tensor '" + std::string(name) + "'");
  return static_cast<std::size_t>(found - specs_.begin());
}

std::vector<float> Inputs::read(std::string_view name, std::int64_t begin, std::int64_t count) const {
  const std::size_t tensor = index_of(name);
  const TensorSpec& spec = specs_[tensor];
  if (spec.role == Role::output) refuse(spec, "is an output; it has no input values");
  if (begin < 0 || count < 0 || begin > spec.elements() - count) {
    throw std::out_of_range("tensor '" + spec.name + "': " + std::to_string(count) + " elements from " +
                            std::to_string(begin) + " on are not within " + std::to_string(spec.elements()));
  }
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source))
    return to_floats(Dtype::i32, integers->data(), begin, count);
  std::vector<float> values(static_cast<std::size_t>(count));
  with_dtype(spec.dtype, [&]<Dtype kDtype>() {
    if constexpr (kDtype != Dtype::i32) {
      float* out = values.data();
      if (const auto* normal = std::get_if<Normal>(&spec.source)) {
        generate_normal<kDtype>(*normal, seed_, tensor, begin, count, 1, [out](std::int64_t i, Stored<kDtype> element) {
          out[i] = stored_value<kDtype>(element);
        });
      } else {
        const auto& function = std::get<std::function<float(std::int64_t)>>(spec.source);
        for (std::int64_t i = 0; i < count; ++i)
          out[i] = stored_value<kDtype>(stored_element<kDtype>(function(begin + i)));
      }
    }
  });
  for (const ElementRange& range : spec.unused) {
    for (std::int64_t i = std::max(range.begin, begin); i < std::min(range.end, begin + count); ++i)
      values[static_cast<std::size_t>(i - begin)] = std::numeric_limits<float>::quiet_NaN();
  }
  return values;
}

const std::vector<std::int32_t>& Inputs::integers(std::string_view name) const {
  const TensorSpec& spec = specs_[index_of(name)];
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source)) return *integers;
  refuse(spec, "holds " + std::string(dtype_name(spec.dtype)) + ", not given integers");
}

std::vector<float> to_floats(Dtype dtype, const void* data, std::int64_t begin, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  with_dtype(dtype, [&]<Dtype kDtype>() {
    const auto* elements = static_cast<const Stored<kDtype>*>(data) + begin;
    std::transform(elements, elements + count, values.begin(), &stored_value<kDtype>);
  });
  return values;
}

}  // namespace inferometer
