// The residual stream h [tokens, hidden] f32, what is added to it, and its RMSNorm [tokens, hidden] f16, in one pass.
// `hidden` is a multiple of 8, tensors start on 16-byte boundaries.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

struct Norm {
  const __half* gain = nullptr;  // [hidden]
  std::int32_t hidden = 0;
  float eps = 0;
  float* inverse = nullptr;  // [tokens]: where to leave 1 / rms(h), or null
};

inline constexpr std::int32_t kMostHidden = 24576;  // a row is kept in registers

// h = embedding[ids[t]], zeros where the id is negative; normed = RMSNorm(h). ids [tokens].
void launch_embed_norm(const std::int32_t* ids, const __half* embedding, float* h, const Norm& norm, __half* normed,
                       std::int64_t tokens, Stream stream);

// h += delta [tokens, hidden]; normed = RMSNorm(h).
void launch_add_norm(const __half* delta, float* h, const Norm& norm, __half* normed, std::int64_t tokens,
                     Stream stream);

// normed [rows, hidden] = RMSNorm(h + delta), or RMSNorm(h) where `delta` is null, of the tokens `tokens` [rows]; zeros
// where that is negative.
void launch_gather_norm(const std::int32_t* tokens, const __half* delta, const float* h, const Norm& norm,
                        __half* normed, std::int64_t rows, Stream stream);

}  // namespace inferometer::decoder
