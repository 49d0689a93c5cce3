#include "reference/checkpoint/safetensors_file.hpp"

namespace inferometer {

SafetensorsFile::SafetensorsFile(const std::string& path)
    : path_(path), file_(path), header_(read_safetensors_header(file_.bytes(), path)) {
  index_.reserve(header_.tensors.size());
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) index_.emplace(header_.tensors[i].name, i);
}

TensorView SafetensorsFile::view(const TensorEntry& entry) const {
  return {.name = entry.name,
          .type = entry.type,
          .shape = entry.shape,
          .data = file_.bytes().subspan(header_.data_start + entry.begin, entry.end - entry.begin)};
}

const TensorEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &header_.tensors[found->second];
}

}  // namespace inferometer
