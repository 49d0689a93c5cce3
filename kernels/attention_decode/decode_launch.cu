#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/decode_launch.hpp"
#include "kernels/attention_decode/decode_plan.hpp"
#include "kernels/attention_decode/partition.hpp"
#include "kernels/common/gpu_limits.hpp"

namespace inferometer::decode {
namespace {

// What a launch needs beside its arguments; made once for a problem.
struct Prepared {
  Plan plan;
  DecodeKernel kernel;
  int shared_bytes = 0;
};

template <Dtype kDtype>
DecodeKernel find_by_format(KvFormat format, const DecodeKernelKey& key) {
  switch (format) {
    case KvFormat::half: return find_kernel<kDtype, KvFormat::half>(key);
    case KvFormat::int8: return find_kernel<kDtype, KvFormat::int8>(key);
    case KvFormat::e4m3: return find_kernel<kDtype, KvFormat::e4m3>(key);
    case KvFormat::int4: return find_kernel<kDtype, KvFormat::int4>(key);
  }
  throw std::logic_error("decode: unknown KV format");
}

// How rows of the cache are counted and where they lie (row_map.cuh, reference/kv_cache/layout.hpp).
void set_layout(DecodeArgs& args, const AttentionDecodeProblem& p) {
  const std::int64_t tokens = p.block_size == 0 ? p.context : p.block_size;
  args.block_tokens = FastDivide(static_cast<std::uint32_t>(p.block_size == 0 ? kPartKeys : tokens));
  args.max_blocks = static_cast<std::int32_t>(p.max_blocks());
  if (p.kv_bits == 16) {
    args.rows_per_block = static_cast<std::uint32_t>(tokens);
    args.k_row_bytes = p.k_stride() * 2;
    args.v_row_bytes = p.v_stride() * 2;
    args.head_bytes = static_cast<std::int32_t>(p.head_dim * 2);
    return;
  }
  args.rows_per_block = static_cast<std::uint32_t>(tokens * p.kv_heads);
  args.rows_per_head = static_cast<std::uint32_t>(tokens);
  args.k_row_bytes = args.v_row_bytes = p.head_dim * p.kv_bits / 8;
  args.groups = static_cast<std::int32_t>(p.groups());
  if (args.groups > 1) args.group_shift = std::bit_width(static_cast<std::uint64_t>(p.kv_group_size / 32)) - 1;
}

DecodeArgs make_args(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Plan& plan,
                     std::byte* workspace) {
  DecodeArgs args{.q = t.q,
                  .k = t.k,
                  .v = t.v,
                  .kv_scales = t.kv_scales,
                  .seq_lens = t.seq_lens,
                  .block_table = t.block_table,
                  .o = t.o,
                  .lse = t.lse};
  args.arrivals = reinterpret_cast<std::uint32_t*>(workspace);
  args.partial_states = reinterpret_cast<SoftmaxState*>(workspace + plan.states_at);
  args.partial_outputs = reinterpret_cast<float*>(workspace + plan.outputs_at);
  args.kv_heads = static_cast<std::int32_t>(p.kv_heads);
  args.group = FastDivide(static_cast<std::uint32_t>(p.q_heads / p.kv_heads));
  args.q_len = static_cast<std::int32_t>(p.q_len);
  set_layout(args, p);
  args.window_left = static_cast<std::int32_t>(std::min(p.window_left, p.context));
  args.row_blocks = static_cast<std::int32_t>(plan.row_blocks);
  args.parts = FastDivide(static_cast<std::uint32_t>(plan.parts));
  args.keys_per_part = static_cast<std::int32_t>(plan.keys_per_part);
  // Equal contiguous sequences: copies need no table, and hardly begin where a sequence has no keys.
  const bool equal =
      std::all_of(p.contexts.begin(), p.contexts.end(), [&](auto context) { return context == p.context; });
  if (p.block_size == 0 && equal && p.window_left < 0 && plan.keys_per_part > 0)
    args.early_keys = static_cast<std::int32_t>(p.context);
  args.cluster = plan.cluster;
  args.scale = 1.0F / std::sqrt(static_cast<float>(p.head_dim));
  args.soft_cap = static_cast<float>(p.soft_cap) / args.scale;
  return args;
}

Prepared prepare_for(const AttentionDecodeProblem& p, const GpuLimits& gpu) {
  Prepared prepared;
  prepared.plan = make_plan(p, gpu);
  const KvFormat format = kv_format_of(p);
  prepared.kernel = p.dtype == Dtype::f16 ? find_by_format<Dtype::f16>(format, prepared.plan.kernel)
                                          : find_by_format<Dtype::bf16>(format, prepared.plan.kernel);
  prepared.shared_bytes = prepared.plan.cluster ? prepared.kernel.cluster_shared_bytes : prepared.kernel.shared_bytes;
  return prepared;
}

void let_take_shared_memory(const DecodeKernel& kernel, const GpuLimits& gpu) {
  // Of the function, not of a problem: the most that any problem asks for, so that none takes it from another.
  const int most_bytes = std::min(kernel.cluster_shared_bytes, static_cast<int>(gpu.block_smem_bytes));
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes));
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel.function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                              cudaSharedmemCarveoutMaxShared));
}

void launch_kernel(const AttentionDecodeProblem& p, const Prepared& prepared, const void* function, Stream stream,
                   void** arguments) {
  const Plan& plan = prepared.plan;
  const auto kv_heads = static_cast<unsigned>(p.kv_heads);
  const auto parts = static_cast<unsigned>(plan.parts);
  cudaLaunchConfig_t config{};
  config.gridDim = plan.cluster ? dim3(parts, kv_heads) : dim3(kv_heads, parts);
  config.gridDim.z = static_cast<unsigned>(p.batch * plan.row_blocks);
  config.blockDim = dim3(static_cast<unsigned>(prepared.kernel.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(prepared.shared_bytes);
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {parts, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = plan.cluster ? 1 : 0;
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelExC(&config, function, arguments));
}

}  // namespace

std::optional<std::string> unsupported_by_gpu(const AttentionDecodeProblem& p) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return std::nullopt;
  const GpuLimits gpu = current_gpu_limits();
  const int shared_bytes = prepare_for(p, gpu).shared_bytes;
  if (static_cast<std::size_t>(shared_bytes) <= gpu.block_smem_bytes) return std::nullopt;
  return "takes " + std::to_string(shared_bytes) + " bytes of shared memory in a block, and the GPU has " +
         std::to_string(gpu.block_smem_bytes);
}

std::size_t decode_workspace_bytes(const AttentionDecodeProblem& p) {
  return make_plan(p, current_gpu_limits()).workspace_bytes;
}

std::shared_ptr<void> prepare_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors&, const Launch&,
                                     Allocator&) {
  const GpuLimits gpu = current_gpu_limits();
  auto prepared = std::make_shared<Prepared>(prepare_for(p, gpu));
  let_take_shared_memory(prepared->kernel, gpu);
  return prepared;
}

void launch_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Launch& launch) {
  const Prepared& prepared = *static_cast<const Prepared*>(launch.state);
  DecodeArgs args = make_args(p, t, prepared.plan, launch.workspace.data());
  std::array<void*, 1> arguments{&args};
  launch_kernel(p, prepared, prepared.kernel.function, launch.stream, arguments.data());
}

bool takes_new_tokens(const AttentionDecodeProblem& p) {
  const bool is_sm90 = current_gpu_limits().clusters;
  return is_sm90 && p.dtype == Dtype::f16 && p.kv_bits == 16 && p.q_len == 1 &&
         (p.head_dim == 64 || p.head_dim == 128) && p.q_heads / p.kv_heads <= 16;
}

void prepare_new_tokens(const Launch& launch) {
  const auto& key = static_cast<const Prepared*>(launch.state)->plan.kernel;
  let_take_shared_memory(find_new_token_kernel(key), current_gpu_limits());
}

void launch_new_tokens(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const NewTokens& tokens,
                       const Launch& launch) {
  const Prepared& prepared = *static_cast<const Prepared*>(launch.state);
  DecodeArgs args = make_args(p, t, prepared.plan, launch.workspace.data());
  NewTokens given = tokens;
  std::array<void*, 2> arguments{&args, &given};
  launch_kernel(p, prepared, find_new_token_kernel(prepared.plan.kernel).function, launch.stream, arguments.data());
}

}  // namespace inferometer::decode
