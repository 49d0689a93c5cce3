// Variants of flash_sm90 that wait for a measurement, for prefill_lab.py. Names: head_dim, shape, letters of options.
#include <algorithm>
#include <cstdio>
#include <iterator>

#include "kernels/attention_prefill/flash_sm90_launch.cuh"

using namespace inferometer;

namespace {

// `merged`: the schedule of this tree, else of the one before; `more`: so many times as many heads a group.
template <class Shape>
void run(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch, bool merged,
         int more) {
  const auto kernel = &flash_sm90_kernel<__half, Shape, false>;
  constexpr int kBytes = sizeof(FlashSm90Shared<Shape>[Shape::kTeams]);
  static_assert(kBytes <= 227 * 1024);
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const GpuLimits gpu = current_gpu_limits();
  FlashSm90Params params = flash_sm90_params<Shape>(p, t, launch, gpu);
  params.schedule.merged = merged;
  params.schedule.group_heads = std::min(params.schedule.heads, params.schedule.group_heads * more);
  kernel<<<static_cast<unsigned>(gpu.sm_count), Shape::kThreads, kBytes, launch.stream>>>(params);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

struct Entry {
  const char* name;
  void (*run)(const AttentionPrefillProblem&, const AttentionPrefillTensors&, const Launch&, bool, int);
};

using O = FlashSm90Options;

// t trusting, g grouped, l late, o outputs first; k and v: stages; 2: two teams.
// clang-format off
#define ENTRY(name, dim, ...) {#dim " " name, &run<FlashSm90Shape<dim, dim, __VA_ARGS__>>}
const Entry kEntries[] = {
    ENTRY("short tk3", 128, 2, 128, 2, O{.trusting = true, .k_stages = 3}),
    ENTRY("short tk3l", 128, 2, 128, 2, O{.trusting = true, .k_stages = 3, .late = true}),
    ENTRY("long t", 128, 3, 80, 1, O{.trusting = true}),
    ENTRY("long tl", 128, 3, 80, 1, O{.trusting = true, .late = true}),
    ENTRY("long tlo", 128, 3, 80, 1, O{.trusting = true, .late = true, .outputs_first = true}),
    ENTRY("longq2 tk3v3l", 128, 3, 80, 2, O{.trusting = true, .k_stages = 3, .v_stages = 3, .late = true}),
    ENTRY("paged tgk3", 128, 2, 128, 2, O{.trusting = true, .grouped = true, .k_stages = 3}),
    ENTRY("paged tgk3l", 128, 2, 128, 2, O{.trusting = true, .grouped = true, .k_stages = 3, .late = true}),
    ENTRY("pagedlong tgk3v3l", 128, 3, 80, 2, O{.trusting = true, .grouped = true, .k_stages = 3, .v_stages = 3, .late = true}),
    ENTRY("teams tk4v42", 64, 2, 64, 2, O{.trusting = true, .teams = 2, .k_stages = 4, .v_stages = 4}),
    ENTRY("teams tk4v42l", 64, 2, 64, 2, O{.trusting = true, .teams = 2, .k_stages = 4, .v_stages = 4, .late = true}),
    ENTRY("wide t", 64, 3, 128, 2, O{.trusting = true}),
    ENTRY("wide tl", 64, 3, 128, 2, O{.trusting = true, .late = true}),
    ENTRY("80 t", 256, 2, 80, 1, O{.trusting = true}),
    ENTRY("80 tl", 256, 2, 80, 1, O{.trusting = true, .late = true}),
    ENTRY("80 tlo", 256, 2, 80, 1, O{.trusting = true, .late = true, .outputs_first = true}),
    ENTRY("64 tk3l", 256, 2, 64, 1, O{.trusting = true, .k_stages = 3, .late = true}),
    ENTRY("64 tk3lo", 256, 2, 64, 1, O{.trusting = true, .k_stages = 3, .late = true, .outputs_first = true}),
    ENTRY("112 t", 192, 2, 112, 1, O{.trusting = true}),
    ENTRY("112 tl", 192, 2, 112, 1, O{.trusting = true, .late = true}),
    ENTRY("112 tlo", 192, 2, 112, 1, O{.trusting = true, .late = true, .outputs_first = true}),
};
// clang-format on

}  // namespace

extern "C" const char* lab_name(unsigned i) { return i < std::size(kEntries) ? kEntries[i].name : nullptr; }

// n: batch, q_heads, kv_heads, q_len, kv_len, head_dim, block_size, causal, window_left, merged, more.
// at: q, k, v, block table, o, lse, workspace, stream.
extern "C" int lab_run(int entry, const std::int64_t* n, void* const* at) {
  AttentionPrefillProblem p{
      .batch = n[0], .q_heads = n[1], .kv_heads = n[2], .q_len = n[3], .kv_len = n[4], .head_dim = n[5]};
  p.block_size = n[6];
  p.causal = n[7] != 0;
  p.window_left = n[8];
  AttentionPrefillTensors t{.q = at[0], .k = at[1], .v = at[2], .o = at[4], .lse = static_cast<float*>(at[5])};
  t.block_table = static_cast<const int*>(at[3]);
  try {
    kEntries[entry].run(p, t, {static_cast<Stream>(at[7]), {static_cast<std::byte*>(at[6]), 8}}, n[9] != 0,
                        static_cast<int>(n[10]));
    return 0;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s\n", error.what());
  }
}
