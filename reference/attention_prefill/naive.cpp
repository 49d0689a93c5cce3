// attention_prefill / cpu.naive: the equation, one head after the other, with all of its scores in memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/attention_prefill/sequence.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;
using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// S and one head of Q, K, V and O of the longest sequence, in f32.
std::size_t workspace_bytes(const Problem& p) {
  return static_cast<std::size_t>(p.q_len * p.kv_len + (p.q_len + p.kv_len) * (p.head_dim + p.v_dim())) * sizeof(float);
}

// One head of one sequence.
struct Head {
  Matrix s;  // [q_len, kv_len]
  Matrix q;  // [q_len, head_dim]
  Matrix k;  // [kv_len, head_dim]
  Matrix v;  // [kv_len, v_dim]
  Matrix o;  // [q_len, v_dim]

  Head(const Problem& p, const PrefillSequence& sequence, float* memory)
      : s(memory, sequence.q_len, sequence.kv_len),
        q(s.data() + s.size(), sequence.q_len, p.head_dim),
        k(q.data() + q.size(), sequence.kv_len, p.head_dim),
        v(k.data() + k.size(), sequence.kv_len, p.v_dim()),
        o(v.data() + v.size(), sequence.q_len, p.v_dim()) {}
};

// Queries begin, ..., end - 1 of one head. `lse`: of its first query.
void attend(const Problem& p, const PrefillSequence& sequence, std::int64_t begin, std::int64_t end, Head& head,
            float* lse) {
  const std::int64_t rows = end - begin;
  auto s = head.s.middleRows(begin, rows);
  s.noalias() =
      head.q.middleRows(begin, rows) * head.k.transpose() * (1.0F / std::sqrt(static_cast<float>(p.head_dim)));
  if (const auto c = static_cast<float>(p.soft_cap); c > 0)
    s = s.unaryExpr([c](float score) { return c * std::tanh(score / c); });
  for (std::int64_t i = begin; i < end; ++i) {  // softmax over the keys that query i sees
    const SeenKeys visible = visible_keys(p, sequence, i);
    head.s.row(i).head(visible.first).setZero();
    head.s.row(i).tail(sequence.kv_len - visible.end).setZero();
    lse[i] = -std::numeric_limits<float>::infinity();
    if (visible.first == visible.end) continue;
    auto row = head.s.row(i).segment(visible.first, visible.end - visible.first).array();
    const float m = row.maxCoeff();
    row = (row - m).exp();
    const float l = row.sum();
    row /= l;
    lse[i] = m + std::log(l);
  }
  head.o.middleRows(begin, rows).noalias() = s * head.v;
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const PrefillSequence sequence = prefill_sequence(p, t, b);
    Head head(p, sequence, reinterpret_cast<float*>(launch.workspace.data()));
    for (std::int64_t h = 0; h < p.q_heads; ++h) {
      const auto row = [&](std::int64_t i) { return (sequence.first_q + i) * p.q_heads + h; };
      for (std::int64_t i = 0; i < sequence.q_len; ++i)
        load_floats(p.dtype, t.q, row(i) * p.head_dim, p.head_dim, head.q.row(i).data());
      load_keys_and_values(p, t, sequence, h / (p.q_heads / p.kv_heads), 0, sequence.kv_len, head.k.data(),
                           head.v.data());
      parallel_for(launch.threads, launch.threads, [&](std::int64_t part) {
        attend(p, sequence, sequence.q_len * part / launch.threads, sequence.q_len * (part + 1) / launch.threads, head,
               t.lse + lse_index(p, sequence, h, 0));
      });
      for (std::int64_t i = 0; i < sequence.q_len; ++i)
        store_floats(p.dtype, head.o.row(i).data(), p.v_dim(), t.o, row(i) * p.v_dim());
    }
  }
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cpu.naive",
    .summary = "the equation in Eigen, head by head, all scores in memory",
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
