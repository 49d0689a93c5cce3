// A safetensors file, open for reading: every rule of the format holds once it is open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reference/checkpoint/mapped_file.hpp"
#include "reference/checkpoint/safetensors_header.hpp"

namespace inferometer {

// A tensor where it lies in the file: at any address, however wide its elements are. Valid while the file is open.
struct TensorView {
  std::string_view name;
  TensorType type = TensorType::f32;
  std::span<const std::uint64_t> shape;
  std::span<const std::byte> data;
};

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);  // throws CheckpointError

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

  TensorView view(const TensorEntry& entry) const;
  const TensorEntry* find(std::string_view name) const;  // null: absent

  void release(const TensorView& tensor) const { file_.release(tensor.data); }

 private:
  std::string path_;
  MappedFile file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, std::size_t> index_;  // names live in header_
};

}  // namespace inferometer
