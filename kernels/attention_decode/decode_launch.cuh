// From a problem to a launch of the decode kernel; the variants differ in their row cursor alone.
#pragma once

#include <cmath>
#include <memory>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/decode_plan.hpp"
#include "kernels/attention_decode/flash_decode.cuh"
#include "kernels/attention_decode/shape.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "reference/attention_decode/problem.hpp"

namespace inferometer::decode {

inline DecodeArgs make_args(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Plan& plan,
                            std::byte* workspace) {
  DecodeArgs args{
      .q = t.q, .k = t.k, .v = t.v, .seq_lens = t.seq_lens, .block_table = t.block_table, .o = t.o, .lse = t.lse};
  args.arrivals = reinterpret_cast<std::uint32_t*>(workspace);
  args.partial_states = reinterpret_cast<SoftmaxState*>(workspace + plan.states_at);
  args.partial_outputs = reinterpret_cast<float*>(workspace + plan.outputs_at);
  args.kv_heads = static_cast<std::int32_t>(p.kv_heads);
  args.group = static_cast<std::int32_t>(p.q_heads / p.kv_heads);
  args.q_len = static_cast<std::int32_t>(p.q_len);
  args.capacity = static_cast<std::int32_t>(p.context);
  args.block_size = static_cast<std::int32_t>(p.block_size);
  args.max_blocks = static_cast<std::int32_t>(p.max_blocks());
  args.row_blocks = static_cast<std::int32_t>(plan.row_blocks);
  args.parts = static_cast<std::int32_t>(plan.parts);
  args.keys_per_part = static_cast<std::int32_t>(plan.keys_per_part);
  args.scale = 1.0F / std::sqrt(static_cast<float>(p.head_dim));
  return args;
}

template <class T, class Shape, class Rows>
void launch_kernel(const DecodeArgs& args, std::int64_t blocks, Stream stream) {
  const auto kernel = flash_decode_kernel<T, Shape, Rows>;
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kSharedBytes));
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
  kernel<<<static_cast<unsigned>(blocks), Shape::kThreads, Shape::kSharedBytes, stream>>>(args);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

template <class T, class Rows, int kHeadDim>
void launch_head(const DecodeArgs& args, const Plan& plan, Stream stream) {
  if constexpr (kHeadDim <= 128) {
    if (plan.block_rows == 16) return launch_kernel<T, Shape<kHeadDim, 2>, Rows>(args, plan.blocks(), stream);
  }
  launch_kernel<T, Shape<kHeadDim, 1>, Rows>(args, plan.blocks(), stream);
}

template <class Rows>
void launch_decode(const AttentionDecodeProblem& p, const AttentionDecodeTensors& t, const Launch& launch) {
  const Plan& plan = *static_cast<const Plan*>(launch.state);
  const DecodeArgs args = make_args(p, t, plan, launch.workspace.data());
  with_half_type(p.dtype, [&]<class T>() {
    switch (p.head_dim) {
      case 64: return launch_head<T, Rows, 64>(args, plan, launch.stream);
      case 80: return launch_head<T, Rows, 80>(args, plan, launch.stream);
      case 96: return launch_head<T, Rows, 96>(args, plan, launch.stream);
      case 112: return launch_head<T, Rows, 112>(args, plan, launch.stream);
      case 128: return launch_head<T, Rows, 128>(args, plan, launch.stream);
      case 192: return launch_head<T, Rows, 192>(args, plan, launch.stream);
      default: return launch_head<T, Rows, 256>(args, plan, launch.stream);
    }
  });
}

// Keeps the plan, whose search over parts would be host time in every launch.
inline std::shared_ptr<void> prepare_plan(const AttentionDecodeProblem& p, const AttentionDecodeTensors&, const Launch&,
                                          Allocator&) {
  return std::make_shared<Plan>(make_plan(p, current_gpu_limits().sm_count));
}

inline std::size_t decode_workspace_bytes(const AttentionDecodeProblem& p) {
  return make_plan(p, current_gpu_limits().sm_count).workspace_bytes;
}

}  // namespace inferometer::decode
