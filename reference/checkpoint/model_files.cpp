#include "reference/checkpoint/model_files.hpp"

#include <filesystem>
#include <map>
#include <system_error>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/json_reader.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

// Tensor -> file. The whole index is checked before any file is opened.
std::map<std::string, std::string> read_index(const std::string& path) {
  const auto refuse = [&](CheckpointFault fault, const std::string& tensor, const std::string& sentence) {
    throw CheckpointError(fault, path, tensor, std::nullopt, sentence);
  };
  const Json json = read_json(read_text_file(path, kMaxHeaderBytes, "index of a model"), path);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object())
    refuse(CheckpointFault::header_form, "", "must be an object with an object 'weight_map'");
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) refuse(CheckpointFault::header_form, tensor, "its file must be a text");
    const auto name = file.get<std::string>();
    // A name alone: an index may not lead out of its folder.
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos)
      refuse(CheckpointFault::header_form, tensor,
             "its file must be a name in the same folder, got " + in_quotes(name));
    files.emplace(tensor, name);
  }
  return files;
}

}  // namespace

ModelFiles::ModelFiles(const std::string& path) : source_(path) {
  std::error_code absent;  // opening says what is wrong with a path
  if (!fs::is_directory(path, absent)) {
    folder_ = fs::path(path).parent_path().string();
    if (folder_.empty()) folder_ = ".";
    add_file(path);
    return;
  }
  folder_ = path;
  const fs::path index = fs::path(path) / "model.safetensors.index.json";
  const fs::path single = fs::path(path) / "model.safetensors";
  if (fs::exists(index, absent)) {
    open_shards(index.string());
  } else if (fs::exists(single, absent)) {
    add_file(single.string());
  } else {
    throw CheckpointError(CheckpointFault::missing, path, "", std::nullopt,
                          "holds neither model.safetensors nor model.safetensors.index.json");
  }
}

void ModelFiles::open_shards(const std::string& index_path) {
  const std::map<std::string, std::string> index = read_index(index_path);
  std::map<std::string, std::string> files;  // name -> a tensor that is in it
  for (const auto& [tensor, file] : index) files.emplace(file, tensor);
  for (const auto& [file, tensor] : files) {
    const std::size_t before = names_.size();
    add_file((fs::path(folder_) / file).string());
    for (std::size_t i = before; i < names_.size(); ++i) {
      const auto named = index.find(names_[i]);
      if (named == index.end() || named->second != file)
        throw CheckpointError(CheckpointFault::content, files_.back().path(), names_[i], std::nullopt,
                              named == index.end() ? "the index does not name it"
                                                   : "the index says that it is in " + in_quotes(named->second));
    }
  }
  for (const auto& [tensor, file] : index)
    if (!has(tensor))
      throw CheckpointError(CheckpointFault::missing, index_path, tensor, std::nullopt,
                            "is not in its file " + in_quotes(file));
}

void ModelFiles::add_file(const std::string& path) {
  const SafetensorsFile& file = files_.emplace_back(path);
  for (const TensorEntry& entry : file.header().tensors) {
    if (!owner_.emplace(entry.name, files_.size() - 1).second)
      throw CheckpointError(CheckpointFault::duplicate, path, entry.name, std::nullopt,
                            "another file of the model has a tensor of this name");
    names_.push_back(entry.name);
  }
}

const SafetensorsFile& ModelFiles::file_of(std::string_view name) const {
  const auto found = owner_.find(std::string(name));
  if (found == owner_.end())
    throw CheckpointError(CheckpointFault::missing, source_, std::string(name), std::nullopt, "is not there");
  return files_[found->second];
}

TensorView ModelFiles::tensor(std::string_view name) const {
  const SafetensorsFile& file = file_of(name);
  return file.view(*file.find(name));
}

}  // namespace inferometer
