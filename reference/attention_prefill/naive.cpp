// attention_prefill / cpu.naive: the equation, one head after the other, with all of its scores in memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;
using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// S and one head of Q, K, V and O, in f32.
std::size_t workspace_bytes(const Problem& p) {
  return static_cast<std::size_t>(p.q_len * p.kv_len + 2 * (p.q_len + p.kv_len) * p.head_dim) * sizeof(float);
}

// Element offset of row i of a head in a tensor [batch, length, heads, head_dim].
std::int64_t row_begin(const Problem& p, std::int64_t length, std::int64_t heads, std::int64_t sequence,
                       std::int64_t head, std::int64_t i) {
  return ((sequence * length + i) * heads + head) * p.head_dim;
}

// Queries begin, ..., end - 1 of one head.
void attend(const Problem& p, std::int64_t begin, std::int64_t end, const Matrix& q, const Matrix& k, const Matrix& v,
            Matrix& s, Matrix& o, float* lse) {
  const std::int64_t rows = end - begin;
  s.middleRows(begin, rows).noalias() =
      q.middleRows(begin, rows) * k.transpose() * (1.0F / std::sqrt(static_cast<float>(p.head_dim)));
  for (std::int64_t i = begin; i < end; ++i) {  // softmax over the keys that query i sees
    const std::int64_t keys = p.causal ? std::clamp<std::int64_t>(i + p.kv_len - p.q_len + 1, 0, p.kv_len) : p.kv_len;
    s.row(i).tail(p.kv_len - keys).setZero();
    lse[i] = -std::numeric_limits<float>::infinity();
    if (keys == 0) continue;
    auto row = s.row(i).head(keys).array();
    const float m = row.maxCoeff();
    row = (row - m).exp();
    const float l = row.sum();
    row /= l;
    lse[i] = m + std::log(l);
  }
  o.middleRows(begin, rows).noalias() = s.middleRows(begin, rows) * v;
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  auto* const memory = reinterpret_cast<float*>(launch.workspace.data());
  Matrix s(memory, p.q_len, p.kv_len);
  Matrix q(s.data() + s.size(), p.q_len, p.head_dim);
  Matrix k(q.data() + q.size(), p.kv_len, p.head_dim);
  Matrix v(k.data() + k.size(), p.kv_len, p.head_dim);
  Matrix o(v.data() + v.size(), p.q_len, p.head_dim);
  for (std::int64_t sequence = 0; sequence < p.batch; ++sequence) {
    for (std::int64_t head = 0; head < p.q_heads; ++head) {
      const std::int64_t kv_head = head / (p.q_heads / p.kv_heads);
      for (std::int64_t i = 0; i < p.q_len; ++i)
        load_floats(p.dtype, t.q, row_begin(p, p.q_len, p.q_heads, sequence, head, i), p.head_dim, q.row(i).data());
      for (std::int64_t j = 0; j < p.kv_len; ++j) {
        const std::int64_t begin = row_begin(p, p.kv_len, p.kv_heads, sequence, kv_head, j);
        load_floats(p.dtype, t.k, begin, p.head_dim, k.row(j).data());
        load_floats(p.dtype, t.v, begin, p.head_dim, v.row(j).data());
      }
      parallel_for(launch.threads, launch.threads, [&](std::int64_t part) {
        attend(p, p.q_len * part / launch.threads, p.q_len * (part + 1) / launch.threads, q, k, v, s, o,
               t.lse + (sequence * p.q_heads + head) * p.q_len);
      });
      for (std::int64_t i = 0; i < p.q_len; ++i)
        store_floats(p.dtype, o.row(i).data(), p.head_dim, t.o, row_begin(p, p.q_len, p.q_heads, sequence, head, i));
    }
  }
}

std::optional<std::string> unsupported(const Problem& p) {
  const bool dense_rows = p.k_stride() == p.kv_heads * p.head_dim && p.v_stride() == p.k_stride();
  if (p.ragged() || p.paged() || !dense_rows || p.window_left >= 0 || p.soft_cap > 0 || p.kv_len == 0)
    return "sequences must be of equal length, with dense contiguous keys and values, without window or soft cap";
  return std::nullopt;
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cpu.naive",
    .summary = "the equation in Eigen, head by head, all scores in memory",
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
