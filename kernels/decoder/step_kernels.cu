#include "kernels/decoder/step_kernels.hpp"

#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kThreads = 128;

dim3 blocks_for(std::int64_t count) { return {static_cast<unsigned>((count + kThreads - 1) / kThreads)}; }

__device__ int thread_number() { return static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x); }

__global__ void __launch_bounds__(kThreads) place_kernel(const PlaceArgs args, int tokens) {
  const int token = thread_number();
  griddepcontrol_wait();
  if (token >= tokens) return;
  const int position = args.positions[token];
  args.blocks[token] = position < 0
                           ? args.spare_block
                           : args.table[std::int64_t{args.rows[token]} * args.max_blocks + position / args.block_size];
  args.slots[token] = position < 0 ? 0 : position % args.block_size;
}

__global__ void __launch_bounds__(kThreads) advance_kernel(const AdvanceArgs args, int rows, int by) {
  const int row = thread_number();
  griddepcontrol_wait();
  if (row >= rows) return;
  args.ids[row] = args.next[row];
  args.positions[row] += by;
  args.lengths[row] += by;
}

}  // namespace

void launch_place(const PlaceArgs& args, std::int64_t tokens, Stream stream) {
  launch_dependent(&place_kernel, blocks_for(tokens), dim3(kThreads), 0, stream, args, static_cast<int>(tokens));
}

void launch_advance(const AdvanceArgs& args, std::int64_t rows, std::int32_t by, Stream stream) {
  launch_dependent(&advance_kernel, blocks_for(rows), dim3(kThreads), 0, stream, args, static_cast<int>(rows), by);
}

}  // namespace inferometer::decoder
