// Where a judge finds the tokens of a KV cache, and their elements read back from the seed in double precision. Written
// from what layout.hpp says, apart from what kernels and CPU variants use.
#pragma once

#include <cstdint>
#include <string_view>

#include "harness/operator/tensor.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {

struct JudgedSlot {
  std::int64_t page = 0;  // block of the pool, or the sequence in a contiguous cache
  std::int64_t within = 0;
};

// `block_size` 0: contiguous. `max_blocks`: columns of the block table, which is read from `inputs`.
JudgedSlot judged_slot(const Inputs& inputs, std::int64_t block_size, std::int64_t max_blocks, std::int64_t sequence,
                       std::int64_t token);

// `count` elements of a tensor from `begin` on.
Eigen::RowVectorXd read_judged_row(const Inputs& inputs, std::string_view tensor, std::int64_t begin,
                                   std::int64_t count);

}  // namespace inferometer
