#include "reference/checkpoint/quantization_method.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace inferometer {
namespace {

constexpr std::array<std::pair<QuantizationMethod, std::string_view>, 3> kMethods{
    {{QuantizationMethod::rtn, "rtn"}, {QuantizationMethod::gptq, "gptq"}, {QuantizationMethod::awq, "awq"}}};

}  // namespace

std::optional<QuantizationMethod> parse_method(std::string_view name) {
  for (const auto& [method, known] : kMethods)
    if (known == name) return method;
  return std::nullopt;
}

std::string_view method_name(QuantizationMethod method) { return kMethods.at(static_cast<std::size_t>(method)).second; }

}  // namespace inferometer
