// How a problem becomes blocks: what both variants share on the host. No CUDA here, so that the CPU tests it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/attention_decode/decode_kernels.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer::decode {

// How the cache of a problem that is not refused is stored.
KvFormat kv_format_of(const AttentionDecodeProblem& p);

// Tiles of 8 query rows in one block: 1 for up to 8 rows of a KV head and for wide heads, whose accumulators fill the
// registers (then rows in excess go to further row blocks, which find K and V in the L2), else 2.
int row_tiles(const AttentionDecodeProblem& p);

struct Plan {
  DecodeKernelKey kernel;
  std::int64_t row_blocks = 0;
  std::int64_t units = 0;          // (sequence, KV head, row block)
  std::int64_t parts = 0;          // of every sequence
  std::int64_t keys_per_part = 0;  // 0: each sequence is cut evenly into `parts`
  bool cluster = false;            // the parts of a unit are a thread block cluster

  std::int64_t block_rows() const { return std::int64_t{8} * kernel.row_tiles; }
  std::int64_t blocks() const { return units * parts; }

  // Workspace, in this order: arrivals, states, outputs, each from a 256-byte boundary. Nothing when parts is 1 or the
  // parts merge in their cluster.
  std::size_t states_at = 0;
  std::size_t outputs_at = 0;
  std::size_t workspace_bytes = 0;
};

// `gpu` that will run it: decides the parts when p.splits is 0.
Plan make_plan(const AttentionDecodeProblem& p, const GpuLimits& gpu);

// The limits that both variants share, as a sentence.
std::optional<std::string> unsupported_by_kernel(const AttentionDecodeProblem& p);

}  // namespace inferometer::decode
