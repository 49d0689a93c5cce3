// The harness's own kernels: filling inputs, clearing the L2, hiding launches, measuring ceilings. CUDA builds only.
// Each function queues one kernel on `stream` and checks its launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "harness/operator/element_range.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

// One multiprocessor's clock cycles beside the nanoseconds they took: the SM clock while the kernel ran.
struct ClockSample {
  std::int64_t cycles = 0;
  std::int64_t nanoseconds = 0;
};

// The same bits as fill_host for a Normal source (f16, bf16 or f32; scale and offset as generate.hpp says).
void launch_fill_normal(Dtype dtype, void* destination, std::int64_t elements, std::uint64_t key, float scale,
                        std::int32_t offset, Stream stream);

// The same bits as fill_host for a RandomBytes source. `destination` is 8-byte aligned.
void launch_fill_random_bytes(void* destination, std::size_t bytes, std::uint64_t key, Stream stream,
                              bool without_e4m3_nan = false);

// Sets every bit of the elements in `range` of the tensor at `destination`, whose elements take `element_bytes`.
void launch_set_all_bits(void* destination, const ElementRange& range, std::size_t element_bytes, Stream stream);

// Reads `bytes` (a multiple of 16) into the L2 and leaves its lines clean. `sink`: four bytes, which keep the compiler
// from dropping the loads. `clock`: where to leave a sample of the SM clock, or nullptr.
void launch_read(const void* data, std::size_t bytes, std::uint32_t* sink, ClockSample* clock, Stream stream);

// Keeps the stream busy for `nanoseconds` while the host queues what follows. Touches no memory but `clock`.
void launch_spin(std::int64_t nanoseconds, ClockSample* clock, Stream stream);

void launch_empty(Stream stream);

// Independent multiply-adds on every multiprocessor; returns the operations it queued, a multiply and an add being two.
double launch_multiply_add(int turns, float* sink, Stream stream);

}  // namespace inferometer
