// The quantisers that a model can go through, by the names that --method takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace inferometer {

enum class QuantizationMethod : std::uint8_t { rtn, gptq, awq };

std::optional<QuantizationMethod> parse_method(std::string_view name);
std::string_view method_name(QuantizationMethod method);

}  // namespace inferometer
