#include <algorithm>
#include <utility>

#include "harness/measure/fastest_pass.hpp"
#include "harness/measure/gpu_ceilings.hpp"
#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/measure/matmul_ceiling.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

constexpr int kMatmulEdge = 8192;
constexpr int kSmallMatmulEdge = 4096;  // where memory is short
constexpr int kPasses = 8;
constexpr std::size_t kStreamBytes = std::size_t{2} << 30;

void measure_bandwidth(Ceilings& ceilings, Stream stream, std::uint32_t* sink, std::size_t l2_bytes) {
  constexpr std::size_t kPageBytes = 4096;
  const std::size_t wanted = std::min(std::max(kStreamBytes, 8 * l2_bytes), free_device_bytes() / 2);
  const std::size_t bytes = wanted / kPageBytes * kPageBytes;
  const CudaMemory memory = make_device_memory(bytes);
  auto* const lower = static_cast<std::byte*>(memory.get());
  const std::size_t half = bytes / 2;
  launch_fill_random_bytes(lower, bytes, /*key=*/3, stream);
  const double read_seconds =
      fastest_pass_seconds([&] { launch_read(lower, bytes, sink, nullptr, stream); }, kPasses, stream);
  const double copy_seconds = fastest_pass_seconds(
      [&] { INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(lower + half, lower, half, cudaMemcpyDeviceToDevice, stream)); },
      kPasses, stream);
  ceilings.read_bytes_per_s = static_cast<double>(bytes) / read_seconds;
  ceilings.copy_bytes_per_s = static_cast<double>(bytes) / copy_seconds;  // half read, half written
}

void measure_matmul(Ceilings& ceilings, Stream stream) {
  // Two operands of two bytes and a result of four, an int8 product's: 8 n^2 bytes, and the library's workspace.
  const auto needed = [](std::size_t n) { return 8 * n * n + (std::size_t{256} << 20); };
  const int n = free_device_bytes() > needed(kMatmulEdge) ? kMatmulEdge : kSmallMatmulEdge;
  const std::int64_t elements = std::int64_t{n} * n;
  const CudaMemory operands = make_device_memory(static_cast<std::size_t>(4 * elements));
  const auto rate = [&](MatmulKind kind) -> std::optional<double> {
    const auto seconds = fastest_matmul_seconds(kind, n, operands.get(), stream);
    if (!seconds) return std::nullopt;
    return 2.0 * static_cast<double>(elements) * n / *seconds;
  };
  // Both 16-bit types run at the same rate a cycle, but the clock follows the power, and that follows the bits: bf16
  // was seen 6 % faster than f16 on an H200.
  const std::pair<MatmulKind, Dtype> sixteen_bit[] = {{MatmulKind::f16, Dtype::f16}, {MatmulKind::bf16, Dtype::bf16}};
  for (const auto& [kind, dtype] : sixteen_bit) {
    launch_fill_normal(dtype, operands.get(), 2 * elements, stream_key(1, 0), normal_scale(1), /*offset=*/0, stream);
    ceilings.f16_flops_per_s = std::max(ceilings.f16_flops_per_s, rate(kind));  // an absent rate is below any other
  }
  launch_fill_random_bytes(operands.get(), static_cast<std::size_t>(2 * elements), /*key=*/4, stream);
  ceilings.int8_ops_per_s = rate(MatmulKind::int8);
}

}  // namespace

Ceilings measure_gpu_ceilings(const Launch& launch, std::size_t l2_bytes) {
  constexpr int kMultiplyAddTurns = 4096;  // about 2 ms
  const CudaMemory sink = make_device_memory(sizeof(std::uint32_t));
  Ceilings ceilings;
  measure_bandwidth(ceilings, launch.stream, static_cast<std::uint32_t*>(sink.get()), l2_bytes);
  // Before the matrix products, which can bring the card to its power limit.
  double operations = 0;
  const double seconds = fastest_pass_seconds(
      [&] { operations = launch_multiply_add(kMultiplyAddTurns, static_cast<float*>(sink.get()), launch.stream); },
      kPasses, launch.stream);
  ceilings.f32_flops_per_s = operations / seconds;
  measure_matmul(ceilings, launch.stream);
  return ceilings;
}

}  // namespace inferometer
