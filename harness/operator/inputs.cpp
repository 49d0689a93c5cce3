// The judge's view of a row's tensors.
#include <algorithm>
#include <limits>
#include <stdexcept>

#include "harness/operator/generate.hpp"
#include "harness/operator/stored.hpp"
#include "harness/operator/tensor.hpp"

namespace inferometer {
namespace {

// The judge reads from within its own parallel loops: no parallel region here.
template <Dtype kDtype>
void read_normal(const Normal& normal, std::uint64_t key, std::int64_t begin, std::vector<float>& values) {
  const float scale = normal_scale(normal.stddev);
  const std::int32_t offset = normal_offset(normal.mean, normal.stddev);
  auto index = static_cast<std::uint64_t>(begin);
  for (float& value : values) value = stored_value<kDtype>(normal_element<kDtype>(key, index++, scale, offset));
}

void read_random_bytes(const RandomBytes& source, std::uint64_t key, std::int64_t begin, std::vector<float>& values) {
  auto index = static_cast<std::uint64_t>(begin);
  std::uint64_t word = random_word(key, index / 8, source.without_e4m3_nan);
  for (float& value : values) {
    value = static_cast<float>((word >> (8 * (index % 8))) & 0xffU);
    if (++index % 8 == 0) word = random_word(key, index / 8, source.without_e4m3_nan);
  }
}

}  // namespace

Inputs::Inputs(std::vector<TensorSpec> specs, std::uint64_t seed) : specs_(std::move(specs)), seed_(seed) {
  for (const TensorSpec& spec : specs_) check_spec(spec);
}

std::size_t Inputs::index_of(std::string_view name) const {
  const auto found = std::find_if(specs_.begin(), specs_.end(), [name](const TensorSpec& s) { return s.name == name; });
  if (found == specs_.end()) throw std::out_of_range("no tensor '" + std::string(name) + "'");
  return static_cast<std::size_t>(found - specs_.begin());
}

std::vector<float> Inputs::read(std::string_view name, std::int64_t begin, std::int64_t count) const {
  const std::size_t tensor = index_of(name);
  const TensorSpec& spec = specs_[tensor];
  if (spec.role == Role::output)
    throw std::invalid_argument("tensor '" + spec.name + "': is an output; it has no input values");
  if (begin < 0 || count < 0 || begin > spec.elements() - count) {
    throw std::out_of_range("tensor '" + spec.name + "': " + std::to_string(count) + " elements from " +
                            std::to_string(begin) + " on are not within " + std::to_string(spec.elements()));
  }
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source))
    return to_floats(Dtype::i32, integers->data(), begin, count);
  const std::uint64_t key = stream_key(seed_, tensor);
  std::vector<float> values(static_cast<std::size_t>(count));
  with_dtype(spec.dtype, [&]<Dtype kDtype>() {
    if constexpr (kDtype != Dtype::i32) {
      if (const auto* computed = std::get_if<Computed>(&spec.source)) {
        std::vector<Stored<kDtype>> stored(values.size());
        computed->fill(seed_, begin, count, stored.data());
        std::transform(stored.begin(), stored.end(), values.begin(), &stored_value<kDtype>);
      } else if (const auto* bytes = std::get_if<RandomBytes>(&spec.source)) {
        read_random_bytes(*bytes, key, begin, values);
      } else if (const auto* normal = std::get_if<Normal>(&spec.source)) {
        read_normal<kDtype>(*normal, key, begin, values);
      } else {
        const auto& function = std::get<std::function<float(std::int64_t)>>(spec.source);
        for (std::int64_t i = 0; i < count; ++i)
          values[static_cast<std::size_t>(i)] = stored_value<kDtype>(stored_element<kDtype>(function(begin + i)));
      }
    }
  });
  const float all_bits = spec.dtype == Dtype::u8 ? 255.0F : std::numeric_limits<float>::quiet_NaN();
  for (const ElementRange& range : spec.unused)
    for_each_part(range, begin, begin + count, [&](std::int64_t first, std::int64_t last) {
      std::fill(values.begin() + (first - begin), values.begin() + (last - begin), all_bits);
    });
  return values;
}

const std::vector<std::int32_t>& Inputs::integers(std::string_view name) const {
  const TensorSpec& spec = specs_[index_of(name)];
  if (const auto* integers = std::get_if<std::vector<std::int32_t>>(&spec.source)) return *integers;
  throw std::invalid_argument("tensor '" + spec.name + "': holds " + std::string(dtype_name(spec.dtype)) +
                              ", not given integers");
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
