// attention_prefill / cpu.flash: tiled attention with online softmax; S is never stored.
//
//   for each tile of queries, with running maximum m, sum l and output O of each query:
//     for each tile of keys:  S = Q K^T / sqrt(d);  m' = max(m, rowmax S);  P = exp(S - m')
//                             l = exp(m - m') l + rowsum P;  O = exp(m - m') O + P V;  m = m'
//     O = O / l;  lse = m + log l
//
// All tiles are held transposed, one query per SIMD lane: the softmax is then the same few instructions on every lane,
// without a horizontal step, and K and V serve the two products as they lie in memory. Exponentials are powers of two:
// log2(e) is multiplied into Q together with 1 / sqrt(d).
// After: Dao et al., "FlashAttention", NeurIPS 2022; Dao, "FlashAttention-2", 2023; Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/tile_product.hpp"

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Tensors = AttentionPrefillTensors;

// All tiles of a thread take 185 KiB at head_dim 128 and stay in its second-level cache.
constexpr std::int64_t kTileQ = 96;  // whole blocks of columns for 8 and for 16 lanes
constexpr std::int64_t kTileKv = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

static_assert(kTileQ % kTileColumns == 0 && kTileKv % kTileRows == 0 && 8 % kTileRows == 0);

// The tiles of one thread.
struct Tiles {
  float* q;    // [head_dim, kTileQ]   Q^T log2(e) / sqrt(head_dim)
  float* k;    // [kTileKv, head_dim]
  float* v;    // [kTileKv, head_dim]
  float* p;    // [kTileKv, kTileQ]    S^T, then P^T
  float* o;    // [head_dim, kTileQ]   O^T
  float* max;  // [kTileQ]             m, as a power of two
  float* sum;  // [kTileQ]             l

  static std::int64_t floats(std::int64_t head_dim) {
    return 2 * head_dim * (kTileQ + kTileKv) + kTileKv * kTileQ + 2 * kTileQ;
  }

  Tiles(float* memory, std::int64_t head_dim)
      : q(memory),
        k(q + head_dim * kTileQ),
        v(k + kTileKv * head_dim),
        p(v + kTileKv * head_dim),
        o(p + kTileKv * kTileQ),
        max(o + head_dim * kTileQ),
        sum(max + kTileQ) {}
};

// One tile of queries of one head: all that a thread works on at a time.
struct Task {
  std::int64_t sequence;
  std::int64_t head;
  std::int64_t kv_head;
  std::int64_t first_query;
  std::int64_t queries;   // at most kTileQ
  std::int64_t columns;   // the same in whole vectors: lanes that are computed
  std::int64_t last_key;  // that the first query sees when causal; the next ones see one more each
  std::int64_t keys;      // that any query of the tile sees
};

Task make_task(const Problem& p, std::int64_t index) {
  // The last queries first: causal, they see most keys, and the short tasks then fill the gaps at the end.
  const std::int64_t tiles = (p.q_len + kTileQ - 1) / kTileQ;
  const std::int64_t first_query = (tiles - 1 - index / (p.batch * p.q_heads)) * kTileQ;
  const std::int64_t head = index % p.q_heads;
  const std::int64_t queries = std::min(kTileQ, p.q_len - first_query);
  const std::int64_t last_key = first_query + p.kv_len - p.q_len;
  return {.sequence = index / p.q_heads % p.batch,
          .head = head,
          .kv_head = head / (p.q_heads / p.kv_heads),
          .first_query = first_query,
          .queries = queries,
          .columns = (queries + kLanes - 1) / kLanes * kLanes,
          .last_key = last_key,
          .keys = p.causal ? std::clamp<std::int64_t>(last_key + queries, 0, p.kv_len) : p.kv_len};
}

void load_queries(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  const float scale = std::numbers::log2e_v<float> / std::sqrt(static_cast<float>(p.head_dim));
  float* const rows = tiles.o;  // [queries, head_dim]; O is not yet in use
  for (std::int64_t i = 0; i < task.queries; ++i) {
    const std::int64_t token = task.sequence * p.q_len + task.first_query + i;
    float* const row = rows + i * p.head_dim;
    load_floats(p.dtype, t.q, (token * p.q_heads + task.head) * p.head_dim, p.head_dim, row);
    std::transform(row, row + p.head_dim, row, [scale](float element) { return element * scale; });
  }
  // The lanes past `queries` keep what an earlier task left in them; nothing of theirs is stored.
  transpose_tile(rows, p.head_dim, task.queries, p.head_dim, tiles.q, kTileQ);
}

void load_keys(const Problem& p, const Tensors& t, const Task& task, std::int64_t first_key, std::int64_t keys,
               const Tiles& tiles) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t token = task.sequence * p.kv_len + first_key + j;
    const std::int64_t begin = (token * p.kv_heads + task.kv_head) * p.head_dim;
    load_floats(p.dtype, t.k, begin, p.head_dim, tiles.k + j * p.head_dim);
    load_floats(p.dtype, t.v, begin, p.head_dim, tiles.v + j * p.head_dim);
  }
}

// S^T of keys that some queries of the tile do not see: -infinity there.
void mask(std::int64_t last_key, std::int64_t first_key, std::int64_t keys, float* s) {
  for (std::int64_t j = 0; j < keys; ++j)
    std::fill_n(s + j * kTileQ, std::clamp<std::int64_t>(first_key + j - last_key, 0, kTileQ), -kInfinity);
}

// S^T to P^T, m and l; O^T is rescaled to the new m.
void softmax_step(std::int64_t head_dim, std::int64_t keys, std::int64_t columns, const Tiles& tiles) {
  for (std::int64_t lane = 0; lane < columns; lane += kLanes) {
    const Vector old_max = load_vector(tiles.max + lane);
    Vector max = old_max;
    for (std::int64_t j = 0; j < keys; ++j) max = max_vector(max, load_vector(tiles.p + j * kTileQ + lane));
    store_vector(tiles.max + lane, max);

    const Vector shift = max == -kInfinity ? Vector{} : max;  // a query without keys so far: exp(-infinity) is 0
    const Vector rescale = exp2_vector(old_max - shift);
    Vector sum = load_vector(tiles.sum + lane) * rescale;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Vector weight = exp2_vector(load_vector(tiles.p + j * kTileQ + lane) - shift);
      store_vector(tiles.p + j * kTileQ + lane, weight);
      sum += weight;
    }
    store_vector(tiles.sum + lane, sum);
    for (std::int64_t d = 0; d < head_dim; ++d)
      store_vector(tiles.o + d * kTileQ + lane, load_vector(tiles.o + d * kTileQ + lane) * rescale);
  }
}

void store_output(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  float* const rows = tiles.q;  // [queries, head_dim]; Q is no longer in use
  transpose_tile(tiles.o, kTileQ, p.head_dim, task.queries, rows, p.head_dim);
  for (std::int64_t i = 0; i < task.queries; ++i) {
    const float sum = tiles.sum[i];
    const float scale = sum == 0.0F ? 0.0F : 1.0F / sum;
    float* const row = rows + i * p.head_dim;
    std::transform(row, row + p.head_dim, row, [scale](float element) { return element * scale; });
    const std::int64_t token = task.sequence * p.q_len + task.first_query + i;
    store_floats(p.dtype, row, p.head_dim, t.o, (token * p.q_heads + task.head) * p.head_dim);
    t.lse[(task.sequence * p.q_heads + task.head) * p.q_len + task.first_query + i] =
        tiles.max[i] * std::numbers::ln2_v<float> + std::log(sum);
  }
}

void attend(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  load_queries(p, t, task, tiles);
  std::fill_n(tiles.o, p.head_dim * kTileQ, 0.0F);
  std::fill_n(tiles.max, kTileQ, -kInfinity);
  std::fill_n(tiles.sum, kTileQ, 0.0F);
  for (std::int64_t first_key = 0; first_key < task.keys; first_key += kTileKv) {
    const std::int64_t keys = std::min(kTileKv, task.keys - first_key);
    const std::int64_t rows = (keys + kTileRows - 1) / kTileRows * kTileRows;
    load_keys(p, t, task, first_key, keys, tiles);
    // S^T = K Q^T [keys, kTileQ]; rows past `keys` are computed from what the tile last held, and not used.
    multiply_tile({tiles.k, p.head_dim, 1}, tiles.q, kTileQ, tiles.p, kTileQ, rows, task.columns, p.head_dim, false);
    if (p.causal && first_key + keys - 1 > task.last_key) mask(task.last_key, first_key, keys, tiles.p);
    softmax_step(p.head_dim, keys, task.columns, tiles);
    // O^T += V^T P^T [head_dim, kTileQ]
    multiply_tile({tiles.v, 1, p.head_dim}, tiles.p, kTileQ, tiles.o, kTileQ, p.head_dim, task.columns, keys, true);
  }
  store_output(p, t, task, tiles);
}

std::size_t tiles_bytes(const Problem& p) {
  return static_cast<std::size_t>(Tiles::floats(p.head_dim)) * sizeof(float);
}

// For as many threads as may run here at once.
std::size_t workspace_bytes(const Problem& p) { return static_cast<std::size_t>(omp_get_num_procs()) * tiles_bytes(p); }

int usable_threads(const Problem& p, const Launch& launch) {
  return std::min(launch.threads, static_cast<int>(launch.workspace.size() / tiles_bytes(p)));
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  const std::int64_t tasks = (p.q_len + kTileQ - 1) / kTileQ * p.batch * p.q_heads;
#pragma omp parallel num_threads(usable_threads(p, launch))
  {
    const Tiles tiles(
        reinterpret_cast<float*>(launch.workspace.data()) + omp_get_thread_num() * Tiles::floats(p.head_dim),
        p.head_dim);
#pragma omp for schedule(dynamic)
    for (std::int64_t index = 0; index < tasks; ++index) attend(p, t, make_task(p, index), tiles);
  }
}

std::optional<std::string> unsupported(const Problem& p) {
  const bool dense_rows = p.k_stride() == p.kv_heads * p.head_dim && p.v_stride() == p.k_stride();
  if (p.ragged() || p.paged() || !dense_rows || p.window_left >= 0 || p.soft_cap > 0 || p.kv_len == 0)
    return "sequences must be of equal length, with dense contiguous keys and values, without window or soft cap";
  return std::nullopt;
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cpu.flash",
    .summary = "tiles of 96 queries by 64 keys, online softmax, one query per SIMD lane",
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
