// SHA-256 (FIPS 180-4): ids of rows and fingerprints of configs. Not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace inferometer {

// 64 lower-case hex digits.
std::string sha256_hex(std::string_view data);

}  // namespace inferometer
