// The header of a safetensors file: 8 bytes of length (little endian), then JSON,
//   {"__metadata__": {"key": "text", ...} or null,
//    "name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
// with offsets from the first byte after the header. The tensors cover the rest of the file: no overlap, no hole, no
// byte after the last. Format: github.com/safetensors/safetensors, README.md ("Format") and safetensors/src/tensor.rs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reference/checkpoint/checkpoint_error.hpp"
#include "reference/checkpoint/tensor_type.hpp"

namespace inferometer {

inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // as the format's own library
inline constexpr std::size_t kHeaderLengthBytes = 8;
inline constexpr std::size_t kMaxRank = 64;  // what NumPy and PyTorch can hold

struct TensorEntry {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  // from the first byte after the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::uint64_t data_start = 0;      // where in the file offset 0 is
  std::vector<TensorEntry> tensors;  // in the order of their places; names are unique
  std::map<std::string, std::string> metadata;
};

// `file`: all its bytes. `path` is its name in errors. Throws CheckpointError; takes memory in proportion to the header
// that is really there, whatever numbers stand in it.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& path);

// The bytes of a header, its length included, padded with blanks so that the data start at a multiple of 8.
std::string safetensors_header_bytes(const std::vector<TensorEntry>& tensors,
                                     const std::map<std::string, std::string>& metadata);

}  // namespace inferometer
