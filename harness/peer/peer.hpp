// A conversation with a peer about one row after the other (docs/peers.md).
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/timing.hpp"
#include "harness/operator/fields.hpp"
#include "harness/operator/tensor.hpp"
#include "harness/peer/manifest.hpp"
#include "harness/peer/peer_process.hpp"
#include "harness/peer/shared_block.hpp"

namespace inferometer {

class Peer {
 public:
  explicit Peer(PeerManifest manifest) : manifest_(std::move(manifest)) {}

  // The sentence why the peer cannot do the problem: it is missing, and how to install it, or its own. Starts it where
  // it is not running. This and what follows throw PeerError; a peer that is gone stays so until the next row.
  std::optional<std::string> refuses(const PeerVariant& variant, const Fields& problem);

  // Memory for tensors, shared with the peer.
  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;

  // Hands over the tensors that were allocated last, one for each of `specs`. Returns the number of the set.
  int prepare(const PeerVariant& variant, const Fields& problem, const std::vector<TensorSpec>& specs);
  void forget(int set) noexcept;
  void launch(int set);
  void read_back();  // what launches left, into the shared outputs
  Timing time(const MeasureConfig& config);

  void require_alive() const;  // throws when a started peer is gone
  const std::map<std::string, std::string>& versions() const { return versions_; }

 private:
  void start();
  void hear_hello();
  std::string text_at(const Json& message, const char* key) const;  // empty where it is null or absent
  Json ask(const Json& message, std::string_view answer);

  PeerManifest manifest_;
  std::unique_ptr<PeerProcess> process_;
  std::string missing_;  // why it cannot be started, once known
  std::map<std::string, std::string> versions_;
  std::list<SharedBlock> blocks_;  // in the order of allocation
  std::vector<int> sets_;          // alive, in the order of preparation
  std::optional<int> launched_;    // since the last read_back
};

}  // namespace inferometer
