// From a problem to a launch of the decode kernel; a cache is contiguous or has a block table, and the kernel asks.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/attention_decode/new_tokens.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer::decode {

// The limits of the current GPU, as a sentence, for a problem that unsupported_by_kernel lets pass. None without a GPU.
std::optional<std::string> unsupported_by_gpu(const AttentionDecodeProblem& p);

std::size_t decode_workspace_bytes(const AttentionDecodeProblem& p);

// Keeps the plan, whose search over parts would be host time in every launch.
std::shared_ptr<void> prepare_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors&, const Launch&,
                                     Allocator&);

void launch_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Launch& launch);

// Whether the newest tokens may come as their product left them: compute capability 9.0 and later, f16, 16 bits, one
// new token a sequence, head_dim 64 or 128, at most 16 query heads a KV head. Throws CudaError.
bool takes_new_tokens(const AttentionDecodeProblem& p);

// Behind prepare_decode, whose state `launch` has; not while a stream is captured.
void prepare_new_tokens(const Launch& launch);

// launch_decode of the queries, keys and values that `tokens` become; t.q is not read.
void launch_new_tokens(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const NewTokens& tokens,
                       const Launch& launch);

}  // namespace inferometer::decode
