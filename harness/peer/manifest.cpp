#include "harness/peer/manifest.hpp"

#include <filesystem>

#include "harness/operator/variant_name.hpp"
#include "harness/results/json.hpp"
#include "harness/results/json_error_words.hpp"
#include "harness/sweep/json_reader.hpp"

namespace inferometer {

PeerManifest read_manifest(const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  const Json json = read_json(read_text_file(path, kMostBytes, "peer manifest"), path);
  try {
    if (json.at("schema") != "inferometer.peer/1") throw std::runtime_error("its schema is another one");
    PeerManifest manifest;
    const std::filesystem::path file = std::filesystem::absolute(path);
    manifest.name = file.stem().string();
    manifest.folder = file.parent_path().string();
    manifest.command = json.at("command").get<std::vector<std::string>>();
    manifest.install = json.at("install");
    for (const auto& [operator_name, variants] : json.at("variants").items())
      for (const auto& [name, summary] : variants.items()) {
        if (!is_variant_name(name))
          throw std::runtime_error("variant '" + operator_name + "/" + name +
                                   "': a name is '<backend>.<method>', each made of a-z, 0-9 and _");
        manifest.variants.push_back({.operator_name = operator_name, .name = name, .summary = summary});
      }
    if (manifest.command.empty()) throw std::runtime_error("command holds no word");
    return manifest;
  } catch (const std::exception& error) {
    throw ConfigError(path + " is no manifest of a peer (docs/peers.md): " + without_json_tags(error.what()));
  }
}

}  // namespace inferometer
