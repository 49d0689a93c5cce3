#pragma once

#include <string_view>

namespace inferometer {

// '<backend>.<method>', each of lower-case letters, digits and underscores: what may be registered.
bool is_variant_name(std::string_view name);

}  // namespace inferometer
