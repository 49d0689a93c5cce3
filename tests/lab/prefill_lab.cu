// Variants of flash_sm90 that wait for a measurement, for prefill_lab.py.
#include <cstdio>
#include <iterator>
#include <string_view>

#include "kernels/attention_prefill/flash_sm90_launch.cuh"

using namespace inferometer;

namespace {

template <class Shape>
void run(const AttentionPrefillProblem& p, const AttentionPrefillTensors& t, const Launch& launch, int group_heads) {
  const auto kernel = &flash_sm90_kernel<__half, Shape, false>;
  constexpr int kBytes = sizeof(FlashSm90Shared<Shape>[Shape::kTeams]);
  static_assert(kBytes <= 227 * 1024);
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  const GpuLimits gpu = current_gpu_limits();
  FlashSm90Params params = flash_sm90_params<Shape>(p, t, launch, gpu);
  if (group_heads > 0) params.schedule.group_heads = group_heads;
  kernel<<<static_cast<unsigned>(gpu.sm_count), Shape::kThreads, kBytes, launch.stream>>>(params);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

constexpr unsigned with(std::string_view letters) {
  const auto has = [&](char letter, unsigned option) { return letters.find(letter) < letters.size() ? option : 0U; };
  using Option = FlashSm90Option;
  return has('t', Option::trusting) | has('p', Option::prefetching) | has('g', Option::grouped) |
         has('2', Option::two_teams) | has('3', Option::three_k_stages);
}

struct Entry {
  const char* name;
  decltype(&run<FlashSm90D64>) run;
};

template <unsigned kOptions>
using Short = FlashSm90Shape<128, 128, 2, 128, 2, kOptions>;
template <unsigned kOptions>
using Long = FlashSm90Shape<128, 128, 3, 80, 1, kOptions>;
template <unsigned kOptions>
using Present = FlashSm90Shape<64, 64, 3, 128, 2, kOptions>;
template <unsigned kOptions>
using Teams = FlashSm90Shape<64, 64, 2, 64, 2, kOptions>;

// clang-format off
#define ENTRY(dim, shape, letters) {dim " " #shape " " letters, &run<shape<with(letters)>>}
const Entry kEntries[] = {
    ENTRY("128", Short, "base"), ENTRY("128", Short, "t"), ENTRY("128", Short, "p"), ENTRY("128", Short, "tp"),
    ENTRY("128", Short, "tp3"), ENTRY("128", Short, "g"), ENTRY("128", Short, "tg"),
    ENTRY("128", Long, "base"), ENTRY("128", Long, "t"), ENTRY("128", Long, "tp"), ENTRY("128", Long, "g"), ENTRY("128", Long, "tg"),
    ENTRY("64", Present, "base"), ENTRY("64", Present, "t"), ENTRY("64", Present, "tp"),
    ENTRY("64", Teams, "2"), ENTRY("64", Teams, "t2"), ENTRY("64", Teams, "tp2"),
};
// clang-format on

}  // namespace

extern "C" const char* lab_name(unsigned i) { return i < std::size(kEntries) ? kEntries[i].name : nullptr; }

// n: batch, q_heads, kv_heads, q_len, kv_len, head_dim, block_size, causal, window_left, heads of a group or 0 for what
// the schedule says. at: q, k, v, block table, o, lse, workspace, stream.
extern "C" int lab_run(int entry, const std::int64_t* n, void* const* at) {
  AttentionPrefillProblem p{
      .batch = n[0], .q_heads = n[1], .kv_heads = n[2], .q_len = n[3], .kv_len = n[4], .head_dim = n[5]};
  p.block_size = n[6];
  p.causal = n[7] != 0;
  p.window_left = n[8];
  AttentionPrefillTensors t{.q = at[0], .k = at[1], .v = at[2], .o = at[4], .lse = static_cast<float*>(at[5])};
  t.block_table = static_cast<const int*>(at[3]);
  try {
    kEntries[entry].run(p, t, {static_cast<Stream>(at[7]), {static_cast<std::byte*>(at[6]), 8}},
                        static_cast<int>(n[9]));
    return 0;
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "%s\n", error.what());
  }
}
