// A model's weights: one safetensors file, or several that model.safetensors.index.json ties together,
//   {"metadata": {...}, "weight_map": {"tensor": "model-00001-of-00002.safetensors", ...}}
// as transformers writes them (docs "Big models", "sharded checkpoints").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "reference/checkpoint/safetensors_file.hpp"

namespace inferometer {

class ModelFiles {
 public:
  // `path`: a safetensors file, or a folder with model.safetensors.index.json or model.safetensors. Throws
  // CheckpointError, and ConfigError when the index is no JSON.
  explicit ModelFiles(const std::string& path);

  const std::string& folder() const { return folder_; }             // where the files beside the weights are
  const std::vector<std::string>& names() const { return names_; }  // of all tensors: file by file, in their places

  const SafetensorsFile& file_of(std::string_view name) const;  // throws CheckpointError (missing)
  TensorView tensor(std::string_view name) const;               // the same
  bool has(std::string_view name) const { return owner_.contains(std::string(name)); }
  void release(const TensorView& tensor) const { file_of(tensor.name).release(tensor); }

 private:
  void open_shards(const std::string& index_path);
  void add_file(const std::string& path);

  std::string source_;  // for errors
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::unordered_map<std::string, std::size_t> owner_;  // tensor -> file
  std::vector<std::string> names_;
};

}  // namespace inferometer
