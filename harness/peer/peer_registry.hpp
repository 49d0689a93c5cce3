// The peers that this process knows, their variants registered beside ours.
#pragma once

#include <string>
#include <string_view>

#include "harness/peer/peer.hpp"

namespace inferometer {

// Registers the variants of every manifest (*.json) in `folder`; without such a folder there are none. Starts nothing.
// Operators that this program lacks are passed over. Throws ConfigError for a manifest that is none, and for a variant
// that is registered already.
void register_peers(const std::string& folder);

// Null for a variant of our own.
Peer* find_peer(std::string_view operator_name, std::string_view variant);

}  // namespace inferometer
