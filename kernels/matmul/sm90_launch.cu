#include "kernels/matmul/sm90_launch.hpp"

#include <array>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/sm90_only.hpp"
#include "kernels/common/tensor_map.hpp"
#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_tile_table.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kStoreElems = 8;  // of a 16-byte access

const Sm90Tile& tile_of(const Sm90Plan& plan) { return kSm90Tiles.at(static_cast<std::size_t>(plan.tile)).tile; }

// Boxes of `box_rows` rows and `row_bytes` bytes of a dense [rows, columns] tensor.
CUtensorMap make_map(Dtype dtype, const void* data, std::int64_t rows, std::int64_t columns, std::int64_t box_rows,
                     int row_bytes = kSm90TileBytesK) {
  const auto element = dtype_bytes(dtype);
  const TensorMapShape<2> shape = {
      .sizes = {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)},
      .stride_bytes = {static_cast<std::uint64_t>(columns) * element},
      .box = {static_cast<std::uint32_t>(row_bytes / element), static_cast<std::uint32_t>(box_rows)}};
  return make_tensor_map(dtype, data, shape);
}

// The rows of x or w, fetched in boxes of `box` rows.
Sm90Rows make_rows(const Sm90Product& p, const void* data, std::int64_t rows, std::int64_t box) {
  const std::int64_t rest = (rows % box + 7) / 8 * 8;  // the swizzle repeats every 8 rows
  return {.whole_map = make_map(p.operand, data, rows, p.k, box),
          .rest_map = make_map(p.operand, data, rows, p.k, rest == 0 ? box : rest),
          .rows = static_cast<std::uint32_t>(rows),
          .box = static_cast<std::uint32_t>(box),
          .rest = static_cast<std::uint32_t>(rest)};
}

// A w stored [k, n], fetched in panels.
Sm90Rows make_panels(const Sm90Product& p, const Sm90Tile& tile) {
  const CUtensorMap map = make_map(p.operand, p.w, p.k, p.n, tile.panel_k());
  return {.whole_map = map, .rest_map = map, .rows = static_cast<std::uint32_t>(p.n), .box = kSm90PanelRows, .rest = 0};
}

Sm90Args make_args(const Sm90Product& p, const Sm90Plan& plan) {
  const Sm90Tile& tile = tile_of(plan);
  const bool in_parts = plan.work.whole < plan.work.order.tiles();
  const int box_a = in_parts ? tile.part_a() : tile.tile_a();
  const int box_b = in_parts ? tile.part_b() : tile.copied_b();
  const int y_groups = plan.work.split > 1 ? 1 : tile.box_groups();
  Sm90Args args{};
  Sm90Rows& x = tile.weights_are_a ? args.b : args.a;
  Sm90Rows& w = tile.weights_are_a ? args.a : args.b;
  x = make_rows(p, p.x, p.m, tile.weights_are_a ? box_b : box_a);
  w = p.w_is_kn ? make_panels(p, tile) : make_rows(p, p.w, p.n, tile.weights_are_a ? box_a : box_b);
  const std::int64_t y_columns = p.gated ? p.n / 2 : p.n;
  args.y_aligned = p.y != nullptr && y_columns % kStoreElems == 0;
  if (args.y_aligned)
    args.y = make_map(p.result, p.y, p.m, y_columns, tile.weights_are_a ? y_groups * 8 : kSm90GroupRows,
                      p.gated ? kSm90TileBytesK / 2 : kSm90TileBytesK);
  args.y_data = p.y;
  args.m = p.m;
  args.n = p.n;
  args.work = plan.work;
  args.own_groups = sm90_own_groups(static_cast<std::uint32_t>(tile.sum_groups()), plan.work.split);
  return args;
}

}  // namespace

void prepare_sm90(const void* kernel, const Sm90Plan& plan) {
  require_sm90_code(kernel, "the sm_90 matmul kernel");
  INFEROMETER_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(tile_of(plan).gated_smem_bytes())));
  INFEROMETER_CUDA_CHECK(
      cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
}

void launch_sm90(const void* kernel, const Sm90Product& product, const Sm90Plan& plan, void* output, Stream stream) {
  Sm90Args args = make_args(product, plan);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(plan.blocks);
  config.blockDim = dim3(static_cast<unsigned>(tile_of(plan).threads()));
  config.dynamicSmemBytes = product.gated ? tile_of(plan).gated_smem_bytes() : tile_of(plan).smem_bytes();
  config.stream = stream;
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {tile_of(plan).pairs ? 2 : plan.work.split, 1, 1};
  config.attrs = &cluster;
  config.numAttrs = cluster.val.clusterDim.x > 1 ? 1 : 0;
  std::array<void*, 2> arguments{&args, output};
  INFEROMETER_CUDA_CHECK(cudaLaunchKernelExC(&config, kernel, arguments.data()));
}

}  // namespace inferometer
