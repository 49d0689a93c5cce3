#include "harness/peer/peer_registry.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "harness/operator/registry.hpp"

namespace inferometer {
namespace {

using Key = std::pair<std::string, std::string>;  // operator and variant

std::map<Key, std::shared_ptr<Peer>>& peers() {
  static std::map<Key, std::shared_ptr<Peer>> all;
  return all;
}

// A variant whose every step is a message to the peer.
Variant spoken_variant(const std::shared_ptr<Peer>& peer, const PeerVariant& spoken) {
  const Operator* op = find_operator(spoken.operator_name);
  Variant variant;
  variant.operator_name = spoken.operator_name;
  variant.name = spoken.name;
  variant.summary = spoken.summary;
  variant.unsupported = [=](const void* problem) { return peer->refuses(spoken, op->describe(problem)); };
  variant.workspace_bytes = [](const void*) { return std::size_t{0}; };
  variant.prepare = [=](const void* problem, const void*, const Launch&, Allocator&) -> std::shared_ptr<void> {
    const int set = peer->prepare(spoken, op->describe(problem), op->shapes(problem));
    return {new int(set), [peer](void* state) {
              const std::unique_ptr<int> own(static_cast<int*>(state));
              peer->forget(*own);
            }};
  };
  variant.run = [=](const void*, const void*, const Launch& launch) { peer->launch(*static_cast<int*>(launch.state)); };
  return variant;
}

void register_manifest(const std::string& path) {
  const PeerManifest manifest = read_manifest(path);
  const auto peer = std::make_shared<Peer>(manifest);
  for (const PeerVariant& variant : manifest.variants) {
    if (find_operator(variant.operator_name) == nullptr) continue;
    if (find_variant(variant.operator_name, variant.name) != nullptr)
      throw ConfigError(path + ": " + variant.operator_name + "/" + variant.name + " is registered already");
    register_variant(spoken_variant(peer, variant));
    peers()[{variant.operator_name, variant.name}] = peer;
  }
}

}  // namespace

void register_peers(const std::string& folder) {
  std::error_code absent;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, absent))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) register_manifest(path);
}

Peer* find_peer(std::string_view operator_name, std::string_view variant) {
  const auto found = peers().find({std::string(operator_name), std::string(variant)});
  return found == peers().end() ? nullptr : found->second.get();
}

}  // namespace inferometer
