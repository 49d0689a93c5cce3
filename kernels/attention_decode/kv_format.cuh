// How the cache stores keys and values, as the kernel sees it: what one ldmatrix of 16-byte chunks brings, and how its
// registers become A operands of mma.m16n8k16.
//
// S^T = K Q^T contracts over head dimensions and O^T = V^T P^T has them as rows, so their order within an operand is
// free as long as Q, or the output, follows. Each format takes the order in which its codes already lie, and no code
// ever moves between lanes. Chunks c and c + 1 of 16 keys come as four matrices m of 8 x 16 bytes:
//   K  ldmatrix        m[0], m[1]: keys 0-7 and 8-15 of chunk c;  m[2], m[3]: of chunk c + 1
//   V  ldmatrix.trans  m[0], m[1]: chunks c and c + 1 of keys 0-7;  m[2], m[3]: of keys 8-15
// A step is 16 dimensions: the depth of one mma over K, the rows of one over V.
#pragma once

#include <cstdint>

#include "kernels/common/codes.cuh"

namespace inferometer::decode {

struct HalfKv {
  static constexpr int kBits = 16;
  static constexpr int kStepsPerLoad = 1;  // that one ldmatrix brings

  static constexpr bool kAdjacentDims = true;  // the two of query_dims
  // The two dimensions of Q in register `half` of step `step`, for lane quad = lane % 4.
  __device__ static int2 query_dims(int step, int half, int quad) {
    const int dim = step * 16 + half * 8 + quad * 2;
    return {dim, dim + 1};
  }
  // The dimension of O in row j + 8 half of step `step`.
  __device__ static int output_dim(int step, int half, int j) { return step * 16 + half * 8 + j; }

  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    for (int i = 0; i < 4; ++i) a[i] = m[i];
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    for (int i = 0; i < 4; ++i) a[i] = m[i];
  }
};

// Bytes: a register of K holds dimensions 4 q .. 4 q + 3 of one key, one of V two dimensions of two keys.
template <class Codes>
struct ByteKv {
  static constexpr int kBits = 8;
  static constexpr int kStepsPerLoad = 2;
  static constexpr bool kAdjacentDims = true;

  __device__ static int2 query_dims(int step, int half, int quad) {
    const int dim = step * 16 + quad * 4 + half * 2;
    return {dim, dim + 1};
  }
  __device__ static int output_dim(int step, int half, int j) { return step * 16 + j * 2 + half; }

  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    a[0] = Codes::template pair<T, 0, 1>(m[2 * kStep]);
    a[1] = Codes::template pair<T, 0, 1>(m[2 * kStep + 1]);
    a[2] = Codes::template pair<T, 2, 3>(m[2 * kStep]);
    a[3] = Codes::template pair<T, 2, 3>(m[2 * kStep + 1]);
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    a[0] = Codes::template pair<T, 0, 2>(m[kStep]);
    a[1] = Codes::template pair<T, 1, 3>(m[kStep]);
    a[2] = Codes::template pair<T, 0, 2>(m[kStep + 2]);
    a[3] = Codes::template pair<T, 1, 3>(m[kStep + 2]);
  }
};

struct Int8Codes {
  template <class T, int kFirst, int kSecond>
  __device__ static std::uint32_t pair(std::uint32_t word) {
    return int8_pair<T, kFirst, kSecond>(word);
  }
};
struct E4m3Codes {
  template <class T, int kFirst, int kSecond>
  __device__ static std::uint32_t pair(std::uint32_t word) {
    return e4m3_pair<T, kFirst, kSecond>(word);
  }
};
using Int8Kv = ByteKv<Int8Codes>;
using E4m3Kv = ByteKv<E4m3Codes>;

// Nibbles: a register of K holds dimensions 8 q .. 8 q + 7 of one key, one of V four dimensions of two keys.
struct Int4Kv {
  static constexpr int kBits = 4;
  static constexpr int kStepsPerLoad = 4;
  static constexpr bool kAdjacentDims = false;

  __device__ static int2 query_dims(int step, int half, int quad) {
    const int dim = step / 2 * 32 + quad * 8 + step % 2 * 2 + half;
    return {dim, dim + 4};
  }
  __device__ static int output_dim(int step, int half, int j) { return step / 2 * 32 + j * 4 + step % 2 * 2 + half; }

  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    constexpr int kChunk = kStep / 2;
    constexpr int kNibble = kStep % 2 * 2;
    a[0] = int4_pair<T, kNibble>(m[2 * kChunk]);
    a[1] = int4_pair<T, kNibble>(m[2 * kChunk + 1]);
    a[2] = int4_pair<T, kNibble + 1>(m[2 * kChunk]);
    a[3] = int4_pair<T, kNibble + 1>(m[2 * kChunk + 1]);
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    constexpr int kChunk = kStep / 2;
    constexpr int kNibble = kStep % 2 * 2;
    a[0] = int4_pair<T, kNibble>(m[kChunk]);
    a[1] = int4_pair<T, kNibble + 1>(m[kChunk]);
    a[2] = int4_pair<T, kNibble>(m[kChunk + 2]);
    a[3] = int4_pair<T, kNibble + 1>(m[kChunk + 2]);
  }
};

}  // namespace inferometer::decode
