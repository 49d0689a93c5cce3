// A peer: another framework whose kernels are judged and timed beside ours, through an adapter that is a process of its
// own (docs/peers.md). Its manifest is a JSON file beside the adapter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace inferometer {

struct PeerVariant {
  std::string operator_name;
  std::string name;  // "torch.sdpa_flash"; one called cpu.* runs on the processors
  std::string summary;
};

struct PeerManifest {
  std::string name;                  // of the file: "torch"
  std::string folder;                // in which the adapter is started
  std::vector<std::string> command;  // its words, the first one looked for in PATH
  std::string install;               // how to get what it needs, for people
  std::vector<PeerVariant> variants;
};

// Throws ConfigError naming the file and what is wrong with it.
PeerManifest read_manifest(const std::string& path);

}  // namespace inferometer
