// attention_prefill / cuda.materialized: standard attention, three steps with the scores of all heads in memory. The
// strong form of what FlashAttention replaces: tensor-core products by cuBLAS, one fused softmax.
//
//   in   q       [batch, q_len, q_heads, head_dim]     f16, bf16
//        k, v    [batch, kv_len, kv_heads, dim]        as q, rows at strides of their own
//   out  o       [batch, q_len, q_heads, v_head_dim]   as q
//        lse     [batch, q_heads, q_len]               f32
//   workspace    scores [batch, q_heads, q_len, kv_len padded to 8]  f32
//
// Scores are kept in f32 and probabilities, which overwrite them, in the input's type: f16 scores overflow at 65504
// and bf16 ones lose what a softmax needs (8 bits of a score of 20 leave an error of 6 % in its exponential). That
// costs 12 bytes moved per score against 8. Causal problems compute all scores, as any dense product does; the softmax
// reads only the visible half.
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

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
  if (auto sentence = equal_contiguous_only(p)) return sentence;
  constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
  for (const auto& [name, stride] : {std::pair{"q_heads * head_dim", p.q_heads * p.head_dim},
                                     std::pair{"q_heads * v_head_dim", p.q_heads * p.v_dim()},
                                     std::pair{"k_row_stride", p.k_stride()}, std::pair{"v_row_stride", p.v_stride()}})
    if (stride > kMaxInt)
      return std::string(name) + " must be at most " + std::to_string(kMaxInt) + ", got " + std::to_string(stride);
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

template <class T, bool kBent>
void launch_softmax(const ScoresSoftmaxParams& params, Stream stream) {
  // The fewest threads whose registers hold a row, 32 scores each; past 16384 keys a row is read twice.
  const auto rows = static_cast<unsigned>(params.rows);
  const int keys = params.visible.kv_len;
  if (keys <= 1024) {
    scores_softmax_kernel<T, 32, 128, kBent><<<(rows + 3) / 4, 128, 0, stream>>>(params);
  } else if (keys <= 2048) {
    scores_softmax_kernel<T, 64, 64, kBent><<<rows, 64, 0, stream>>>(params);
  } else if (keys <= 4096) {
    scores_softmax_kernel<T, 128, 128, kBent><<<rows, 128, 0, stream>>>(params);
  } else if (keys <= 8192) {
    scores_softmax_kernel<T, 256, 256, kBent><<<rows, 256, 0, stream>>>(params);
  } else {
    scores_softmax_kernel<T, 512, 512, kBent><<<rows, 512, 0, stream>>>(params);
  }
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

template <class T>
void softmax_rows(const Problem& p, const Tensors& t, float* scores, Stream stream) {
  const double cap = p.soft_cap * std::sqrt(static_cast<double>(p.head_dim));
  const ScoresSoftmaxParams params{
      .scores = scores,
      .lse = t.lse,
      .rows = p.batch * p.q_heads * p.q_len,
      .pitch = pitch_of(p),
      .q_len = static_cast<int>(p.q_len),
      .visible =
          VisibleKeys(static_cast<int>(p.q_len), static_cast<int>(p.kv_len), p.causal, static_cast<int>(p.window_left)),
      .scale = SoftmaxScale(p.head_dim),
      .cap = static_cast<float>(cap),
      .inverse_cap = cap > 0 ? static_cast<float>(1 / cap) : 0.0F,
  };
  if (p.window_left >= 0 || p.soft_cap > 0) {
    launch_softmax<T, true>(params, stream);
  } else {
    launch_softmax<T, false>(params, stream);
  }
}

template <class T>
void run_as(const Problem& p, const Tensors& t, const Launch& launch) {
  auto* const scores = reinterpret_cast<float*>(launch.workspace.data());
  // No more than cuBLAS's part, where the workspace is that of a larger problem: what it chooses depends on the size.
  const cublasHandle_t blas =
      cublas_handle(launch.stream, launch.workspace.subspan(scores_bytes(p), kCublasWorkspaceBytes));
  const cudaDataType_t type = cuda_data_type(p.dtype);
  const auto q_len = static_cast<int>(p.q_len);
  const auto kv_len = static_cast<int>(p.kv_len);
  const auto dim = static_cast<int>(p.head_dim);
  const auto v_dim = static_cast<int>(p.v_dim());
  const auto q_stride = static_cast<int>(p.q_heads * p.head_dim);
  const auto o_stride = static_cast<int>(p.q_heads * p.v_dim());
  const auto k_stride = static_cast<int>(p.k_stride());
  const auto v_stride = static_cast<int>(p.v_stride());
  const std::int64_t pitch = pitch_of(p);
  const std::int64_t head_scores = p.q_len * pitch;
  const std::int64_t group = p.q_heads / p.kv_heads;
  const float one = 1.0F;
  const float zero = 0.0F;

  // Calls f(sequence, run, offset in scores) for runs that cover all heads.
  const auto for_each_run = [&](auto&& f) {
    const std::int64_t runs = p.q_heads / head_run(p, 0).count;
    for (std::int64_t b = 0; b < p.batch; ++b)
      for (std::int64_t r = 0; r < runs; ++r) {
        const HeadRun heads = head_run(p, r);
        f(b, heads, (b * p.q_heads + heads.first_q_head) * head_scores);
      }
  };
  // cuBLAS counts in columns: a row-major matrix is its transpose there. S^T = K Q^T  [kv_len, q_len]
  for_each_run([&](std::int64_t b, const HeadRun& heads, std::int64_t s) {
    const T* const q = static_cast<const T*>(t.q) + b * p.q_len * q_stride + heads.first_q_head * dim;
    const T* const k = static_cast<const T*>(t.k) + b * p.kv_len * k_stride + heads.first_q_head / group * dim;
    INFEROMETER_CUBLAS_CHECK(cublasGemmStridedBatchedEx(
        blas, CUBLAS_OP_T, CUBLAS_OP_N, kv_len, q_len, dim, &one, k, type, k_stride, heads.kv_step * dim, q, type,
        q_stride, heads.q_step * dim, &zero, scores + s, CUDA_R_32F, static_cast<int>(pitch),
        heads.q_step * head_scores, static_cast<int>(heads.count), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  });
  softmax_rows<T>(p, t, scores, launch.stream);
  // O^T = V^T P^T  [v_dim, q_len]; a row of P has the pitch of a row of scores, twice as many 16-bit elements.
  for_each_run([&](std::int64_t b, const HeadRun& heads, std::int64_t s) {
    T* const o = static_cast<T*>(t.o) + b * p.q_len * o_stride + heads.first_q_head * v_dim;
    const T* const v = static_cast<const T*>(t.v) + b * p.kv_len * v_stride + heads.first_q_head / group * v_dim;
    INFEROMETER_CUBLAS_CHECK(cublasGemmStridedBatchedEx(
        blas, CUBLAS_OP_N, CUBLAS_OP_N, v_dim, q_len, kv_len, &one, v, type, v_stride, heads.kv_step * v_dim,
        reinterpret_cast<const T*>(scores + s), type, static_cast<int>(2 * pitch), 2 * heads.q_step * head_scores,
        &zero, o, type, o_stride, heads.q_step * v_dim, static_cast<int>(heads.count), CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT));
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
