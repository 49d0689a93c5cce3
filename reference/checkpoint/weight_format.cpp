#include "reference/checkpoint/weight_format.hpp"

#include <algorithm>

namespace inferometer {

const std::vector<const WeightFormat*>& weight_formats() {
  static const std::vector<const WeightFormat*> formats{&kGptqFormat, &kGptqV2Format, &kAwqFormat,
                                                        &kCompressedTensorsFormat};
  return formats;
}

const WeightFormat* find_weight_format(std::string_view name) {
  const auto& formats = weight_formats();
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const WeightFormat* format) { return format->name == name; });
  return found == formats.end() ? nullptr : *found;
}

}  // namespace inferometer
