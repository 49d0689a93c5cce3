// From a problem to a launch of the decode kernel; a cache is contiguous or has a block table, and the kernel asks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer::decode {

// The limits of the current GPU, as a sentence, for a problem that unsupported_by_kernel lets pass. None without a GPU.
std::optional<std::string> unsupported_by_gpu(const AttentionDecodeProblem& p);

std::size_t decode_workspace_bytes(const AttentionDecodeProblem& p);

// Keeps the plan, whose search over parts would be host time in every launch.
std::shared_ptr<void> prepare_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors&, const Launch&,
                                     Allocator&);

void launch_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Launch& launch);

}  // namespace inferometer::decode
