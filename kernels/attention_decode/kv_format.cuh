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

#include "kernels/attention_decode/raw_codes.cuh"
#include "kernels/common/codes.cuh"

namespace inferometer::decode {

struct HalfKv {
  static constexpr int kBits = 16;
  static constexpr int kStepsPerLoad = 1;  // that one ldmatrix brings
  template <class T>
  using Codes = ExactCodes;

  // B operands of `kQuerySteps` steps from a row of Q, for lane quad = lane % 4.
  static constexpr int kQuerySteps = 1;
  __device__ static void query_operand(std::uint32_t (&b)[1][2], const std::uint16_t* row, int step, int quad) {
    for (int half = 0; half < 2; ++half)
      b[0][half] = __ldg(reinterpret_cast<const std::uint32_t*>(row + step * 16 + half * 8 + quad * 2));
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
struct ByteKv {
  static constexpr int kBits = 8;
  static constexpr int kStepsPerLoad = 2;
  static constexpr int kQuerySteps = 1;

  __device__ static uint2 query_quad(const std::uint16_t* row, int step, int quad) {
    return __ldg(reinterpret_cast<const uint2*>(row + step * 16 + quad * 4));
  }
  __device__ static int output_dim(int step, int half, int j) { return step * 16 + j * 2 + half; }
};

struct Int8Kv : ByteKv {
  template <class T>
  using Codes = RawInt8<T>;

  __device__ static void query_operand(std::uint32_t (&b)[1][2], const std::uint16_t* row, int step, int quad) {
    const uint2 dims = query_quad(row, step, quad);
    b[0][0] = __byte_perm(dims.x, dims.y, 0x5410);  // dimensions 0 and 2
    b[0][1] = __byte_perm(dims.x, dims.y, 0x7632);  // 1 and 3
  }
  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    unpack<T>(a[0], a[2], m[2 * kStep]);
    unpack<T>(a[1], a[3], m[2 * kStep + 1]);
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    unpack<T>(a[0], a[1], m[kStep]);
    unpack<T>(a[2], a[3], m[kStep + 2]);
  }

 private:
  template <class T>
  __device__ static void unpack(std::uint32_t& even, std::uint32_t& odd, std::uint32_t word) {
    std::uint32_t pair[2];
    Codes<T>::unpack(pair, word);
    even = pair[0];
    odd = pair[1];
  }
};

struct E4m3Kv : ByteKv {
  template <class T>
  using Codes = ExactCodes;

  __device__ static void query_operand(std::uint32_t (&b)[1][2], const std::uint16_t* row, int step, int quad) {
    const uint2 dims = query_quad(row, step, quad);
    b[0][0] = dims.x;
    b[0][1] = dims.y;
  }
  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    a[0] = e4m3_pair<T, 0, 1>(m[2 * kStep]);
    a[1] = e4m3_pair<T, 0, 1>(m[2 * kStep + 1]);
    a[2] = e4m3_pair<T, 2, 3>(m[2 * kStep]);
    a[3] = e4m3_pair<T, 2, 3>(m[2 * kStep + 1]);
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    a[0] = e4m3_pair<T, 0, 2>(m[kStep]);
    a[1] = e4m3_pair<T, 1, 3>(m[kStep]);
    a[2] = e4m3_pair<T, 0, 2>(m[kStep + 2]);
    a[3] = e4m3_pair<T, 1, 3>(m[kStep + 2]);
  }
};

// Nibbles: a register of K holds dimensions 8 q .. 8 q + 7 of one key, one of V four dimensions of two keys. Even
// nibbles go to even steps of K and to rows 0-7 of V, odd ones to odd steps and rows 8-15.
struct Int4Kv {
  static constexpr int kBits = 4;
  static constexpr int kStepsPerLoad = 4;
  template <class T>
  using Codes = RawInt4<T>;

  static constexpr int kQuerySteps = 2;
  __device__ static void query_operand(std::uint32_t (&b)[2][2], const std::uint16_t* row, int step, int quad) {
    const uint4 dims = __ldg(reinterpret_cast<const uint4*>(row + step * 16 + quad * 8));
    b[0][0] = __byte_perm(dims.x, dims.z, 0x5410);  // dimensions 0 and 4
    b[0][1] = __byte_perm(dims.y, dims.w, 0x5410);  // 2 and 6
    b[1][0] = __byte_perm(dims.x, dims.z, 0x7632);  // 1 and 5
    b[1][1] = __byte_perm(dims.y, dims.w, 0x7632);  // 3 and 7
  }
  __device__ static int output_dim(int step, int half, int j) { return step / 2 * 32 + j * 4 + step % 2 * 2 + half; }

  template <class T, int kStep>
  __device__ static void key_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    constexpr int kChunk = kStep / 2;
    constexpr int kOdd = kStep % 2;
    std::uint32_t low[4];
    std::uint32_t high[4];
    Codes<T>::unpack(low, m[2 * kChunk]);
    Codes<T>::unpack(high, m[2 * kChunk + 1]);
    a[0] = low[kOdd];
    a[1] = high[kOdd];
    a[2] = low[kOdd + 2];
    a[3] = high[kOdd + 2];
  }
  template <class T, int kStep>
  __device__ static void value_operand(std::uint32_t (&a)[4], const std::uint32_t (&m)[4]) {
    constexpr int kChunk = kStep / 2;
    constexpr int kNibble = kStep % 2 * 2;
    std::uint32_t low[4];
    std::uint32_t high[4];
    Codes<T>::unpack(low, m[kChunk]);
    Codes<T>::unpack(high, m[kChunk + 2]);
    a[0] = low[kNibble];
    a[1] = low[kNibble + 1];
    a[2] = high[kNibble];
    a[3] = high[kNibble + 1];
  }
};

}  // namespace inferometer::decode
