// attention_prefill / cuda.materialized: standard attention, three steps with the scores of all heads in memory. The
// strong form of what FlashAttention replaces: tensor-core products by cuBLAS, one fused softmax.
//
//   in   q       [batch, q_len, q_heads, head_dim]     f16, bf16
//        k, v    [batch, kv_len, kv_heads, head_dim]   as q
//   out  o       [batch, q_len, q_heads, head_dim]     as q
//        lse     [batch, q_heads, q_len]               f32
//   workspace    scores [batch, q_heads, q_len, kv_len padded to 8]  f32
//
// Scores are kept in f32 and probabilities, which overwrite them, in the input's type: f16 scores overflow at 65504
// and bf16 ones lose what a softmax needs (8 bits of a score of 20 leave an error of 6 % in its exponential). That
// costs 12 bytes moved per score against 8. Causal problems compute all scores, as any dense product does; the softmax
// reads only the visible half.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/attention_prefill/prefill_limits.hpp"
#include "kernels/attention_prefill/scores_softmax.cuh"
#include "kernels/common/cublas.hpp"
#include "kernels/common/half_ops.cuh"
#include "reference/attention_prefill/problem.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;

// Rows of scores start at 32 bytes, and probabilities with them: what 16-byte accesses and cuBLAS's fast kernels need.
std::int64_t pitch_of(const Problem& p) { return (p.kv_len + 7) / 8 * 8; }

std::size_t scores_bytes(const Problem& p) {
  const auto bytes = static_cast<std::size_t>(p.batch * p.q_heads * p.q_len * pitch_of(p)) * sizeof(float);
  return (bytes + 255) / 256 * 256;
}

std::size_t workspace_bytes(const Problem& p) { return scores_bytes(p) + kCublasWorkspaceBytes; }

std::optional<std::string> unsupported(const Problem& p) {
  if (auto sentence = prefill_limits(p)) return sentence;
  if (auto sentence = plain_prefill_only(p)) return sentence;
  constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
  if (p.q_heads * p.head_dim > kMaxInt)
    return "q_heads * head_dim must be at most " + std::to_string(kMaxInt) + ", got " +
           std::to_string(p.q_heads * p.head_dim);
  if (p.batch * p.q_heads * p.q_len > kMaxInt)
    return "batch * q_heads * q_len must be at most " + std::to_string(kMaxInt) + ", got " +
           std::to_string(p.batch * p.q_heads * p.q_len);
  return std::nullopt;
}

// The heads that one strided-batched product covers: `count` of them, whose matrices lie a fixed distance apart.
struct HeadRun {
  std::int64_t first_q_head;
  std::int64_t q_step;   // in q heads
  std::int64_t kv_step;  // in KV heads
  std::int64_t count;
};

// Query heads of one KV head with its matrix repeated, or one query head of each KV head: whichever makes fewer, larger
// products.
HeadRun head_run(const Problem& p, std::int64_t index) {
  const std::int64_t group = p.q_heads / p.kv_heads;
  if (group > p.kv_heads) return {.first_q_head = index * group, .q_step = 1, .kv_step = 0, .count = group};
  return {.first_q_head = index, .q_step = group, .kv_step = 1, .count = p.kv_heads};
}

template <class T>
void softmax_rows(const Problem& p, const Tensors& t, float* scores, Stream stream) {
  const ScoresSoftmaxParams params{
      .scores = scores,
      .lse = t.lse,
      .rows = p.batch * p.q_heads * p.q_len,
      .pitch = pitch_of(p),
      .q_len = static_cast<int>(p.q_len),
      .visible = VisibleKeys(static_cast<int>(p.q_len), static_cast<int>(p.kv_len), p.causal),
      .scale = SoftmaxScale(p.head_dim),
  };
  // The fewest threads whose registers hold a row, 32 scores each; past 16384 keys a row is read twice.
  const auto rows = static_cast<unsigned>(params.rows);
  if (p.kv_len <= 1024) {
    scores_softmax_kernel<T, 32, 128><<<(rows + 3) / 4, 128, 0, stream>>>(params);
  } else if (p.kv_len <= 2048) {
    scores_softmax_kernel<T, 64, 64><<<rows, 64, 0, stream>>>(params);
  } else if (p.kv_len <= 4096) {
    scores_softmax_kernel<T, 128, 128><<<rows, 128, 0, stream>>>(params);
  } else if (p.kv_len <= 8192) {
    scores_softmax_kernel<T, 256, 256><<<rows, 256, 0, stream>>>(params);
  } else {
    scores_softmax_kernel<T, 512, 512><<<rows, 512, 0, stream>>>(params);
  }
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void run_as(const Problem& p, const Tensors& t, const Launch& launch) {
  auto* const scores = reinterpret_cast<float*>(launch.workspace.data());
  const cublasHandle_t blas = cublas_handle(launch.stream, launch.workspace.subspan(scores_bytes(p)));
  const cudaDataType_t type = cuda_data_type(p.dtype);
  const auto q_len = static_cast<int>(p.q_len);
  const auto kv_len = static_cast<int>(p.kv_len);
  const auto dim = static_cast<int>(p.head_dim);
  const auto q_stride = static_cast<int>(p.q_heads * p.head_dim);
  const auto kv_stride = static_cast<int>(p.kv_heads * p.head_dim);
  const std::int64_t pitch = pitch_of(p);
  const std::int64_t head_scores = p.q_len * pitch;
  const std::int64_t group = p.q_heads / p.kv_heads;
  const float one = 1.0F;
  const float zero = 0.0F;

  // Calls f(offset in q and o, offset in k and v, offset in scores, run) for runs that cover all heads.
  const auto for_each_run = [&](auto&& f) {
    const std::int64_t runs = p.q_heads / head_run(p, 0).count;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t r = 0; r < runs; ++r) {
        const HeadRun heads = head_run(p, r);
        f(b * p.q_len * q_stride + heads.first_q_head * dim,
          b * p.kv_len * kv_stride + heads.first_q_head / group * dim,
          (b * p.q_heads + heads.first_q_head) * head_scores, heads);
      }
  };
  // cuBLAS counts in columns: a row-major matrix is its transpose there. S^T = K Q^T  [kv_len, q_len]
  for_each_run([&](std::int64_t q, std::int64_t kv, std::int64_t s, const HeadRun& heads) {
    INFEROMETER_CUBLAS_CHECK(cublasGemmStridedBatchedEx(
        blas, CUBLAS_OP_T, CUBLAS_OP_N, kv_len, q_len, dim, &one, static_cast<const T*>(t.k) + kv, type, kv_stride,
        heads.kv_step * dim, static_cast<const T*>(t.q) + q, type, q_stride, heads.q_step * dim, &zero, scores + s,
        CUDA_R_32F, static_cast<int>(pitch), heads.q_step * head_scores, static_cast<int>(heads.count),
        CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  });
  softmax_rows<T>(p, t, scores, launch.stream);
  // O^T = V^T P^T  [head_dim, q_len]; a row of P has the pitch of a row of scores, twice as many 16-bit elements.
  for_each_run([&](std::int64_t q, std::int64_t kv, std::int64_t s, const HeadRun& heads) {
    INFEROMETER_CUBLAS_CHECK(cublasGemmStridedBatchedEx(
        blas, CUBLAS_OP_N, CUBLAS_OP_N, dim, q_len, kv_len, &one, static_cast<const T*>(t.v) + kv, type, kv_stride,
        heads.kv_step * dim, reinterpret_cast<const T*>(scores + s), type, static_cast<int>(2 * pitch),
        2 * heads.q_step * head_scores, &zero, static_cast<T*>(t.o) + q, type, q_stride, heads.q_step * dim,
        static_cast<int>(heads.count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  });
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  with_half_type(p.dtype, [&]<class T>() { run_as<T>(p, t, launch); });
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cuda.materialized",
    .summary = "cuBLAS products around one fused softmax, scores in memory (f32)",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
