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
#include <vector>

#include "harness/operator/variant.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "reference/attention_prefill/sequence.hpp"
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

// The tiles of one thread. Q and O each serve once as rows [kTileQ, dim] of the other, hence their common size.
struct Tiles {
  float* q;    // [head_dim, kTileQ]   Q^T log2(e) / sqrt(head_dim)
  float* k;    // [kTileKv, head_dim]
  float* v;    // [kTileKv, v_dim]
  float* p;    // [kTileKv, kTileQ]    S^T, then P^T
  float* o;    // [v_dim, kTileQ]      O^T
  float* max;  // [kTileQ]             m, as a power of two
  float* sum;  // [kTileQ]             l

  static std::int64_t wider(const Problem& p) { return std::max(p.head_dim, p.v_dim()); }
  static std::int64_t floats(const Problem& p) {
    return 2 * wider(p) * kTileQ + (p.head_dim + p.v_dim()) * kTileKv + kTileKv * kTileQ + 2 * kTileQ;
  }

  Tiles(float* memory, const Problem& problem)
      : q(memory),
        k(q + wider(problem) * kTileQ),
        v(k + kTileKv * problem.head_dim),
        p(v + kTileKv * problem.v_dim()),
        o(p + kTileKv * kTileQ),
        max(o + wider(problem) * kTileQ),
        sum(max + kTileQ) {}
};

// A tile of queries of one sequence, of any head.
struct QueryTile {
  PrefillSequence sequence;
  std::int64_t first_query;
  std::int64_t queries;  // at most kTileQ
  SeenKeys keys;         // that any of them sees
};

// One head of it: all that a thread works on at a time.
struct Task {
  const QueryTile& tile;
  std::int64_t head;
  std::int64_t kv_head;
  std::int64_t columns;  // its queries in whole vectors: lanes that are computed

  std::int64_t row(std::int64_t query) const { return tile.sequence.first_q + tile.first_query + query; }
};

// Those with most keys first: the short ones then fill the gaps at the end.
std::vector<QueryTile> query_tiles(const Problem& p, const Tensors& t) {
  std::vector<QueryTile> tiles;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const PrefillSequence sequence = prefill_sequence(p, t, b);
    for (std::int64_t first = 0; first < sequence.q_len; first += kTileQ) {
      const std::int64_t queries = std::min(kTileQ, sequence.q_len - first);
      const SeenKeys of_first = visible_keys(p, sequence, first);
      const SeenKeys of_last = visible_keys(p, sequence, first + queries - 1);
      tiles.push_back({.sequence = sequence,
                       .first_query = first,
                       .queries = queries,
                       .keys = {.first = of_first.first, .end = of_last.end}});
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(), [](const QueryTile& a, const QueryTile& b) {
    return a.keys.end - a.keys.first > b.keys.end - b.keys.first;
  });
  return tiles;
}

void load_queries(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  const float scale = std::numbers::log2e_v<float> / std::sqrt(static_cast<float>(p.head_dim));
  float* const rows = tiles.o;  // [queries, head_dim]; O is not yet in use
  for (std::int64_t i = 0; i < task.tile.queries; ++i) {
    float* const row = rows + i * p.head_dim;
    load_floats(p.dtype, t.q, (task.row(i) * p.q_heads + task.head) * p.head_dim, p.head_dim, row);
    std::transform(row, row + p.head_dim, row, [scale](float element) { return element * scale; });
  }
  // The lanes past `queries` keep what an earlier task left in them; nothing of theirs is stored.
  transpose_tile(rows, p.head_dim, task.tile.queries, p.head_dim, tiles.q, kTileQ);
}

// c tanh(S / c), of scores that carry the factor log2(e).
void cap_scores(const Problem& p, std::int64_t keys, float* s) {
  const auto cap = static_cast<float>(p.soft_cap * std::numbers::log2e);
  std::transform(s, s + keys * kTileQ, s, [cap](float score) { return cap * std::tanh(score / cap); });
}

// S^T of keys that some queries of the tile do not see: -infinity there. `own`: the own key of the first query, whose
// neighbours have the next ones.
void mask(const Problem& p, std::int64_t own, std::int64_t first_key, std::int64_t keys, float* s) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const std::int64_t first_seeing = std::clamp<std::int64_t>(first_key + j - own, 0, kTileQ);
    std::fill_n(s + j * kTileQ, first_seeing, -kInfinity);
    if (p.window_left < 0) continue;
    const std::int64_t end_seeing = std::clamp<std::int64_t>(first_key + j - own + p.window_left + 1, 0, kTileQ);
    std::fill(s + j * kTileQ + end_seeing, s + (j + 1) * kTileQ, -kInfinity);
  }
}

// S^T to P^T, m and l; O^T is rescaled to the new m.
void softmax_step(std::int64_t v_dim, std::int64_t keys, std::int64_t columns, const Tiles& tiles) {
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
    for (std::int64_t d = 0; d < v_dim; ++d)
      store_vector(tiles.o + d * kTileQ + lane, load_vector(tiles.o + d * kTileQ + lane) * rescale);
  }
}

void store_output(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  const std::int64_t dim = p.v_dim();
  float* const rows = tiles.q;  // [queries, v_dim]; Q is no longer in use
  transpose_tile(tiles.o, kTileQ, dim, task.tile.queries, rows, dim);
  float* const lse = t.lse + lse_index(p, task.tile.sequence, task.head, task.tile.first_query);
  for (std::int64_t i = 0; i < task.tile.queries; ++i) {
    const float sum = tiles.sum[i];
    const float scale = sum == 0.0F ? 0.0F : 1.0F / sum;
    float* const row = rows + i * dim;
    std::transform(row, row + dim, row, [scale](float element) { return element * scale; });
    store_floats(p.dtype, row, dim, t.o, (task.row(i) * p.q_heads + task.head) * dim);
    lse[i] = tiles.max[i] * std::numbers::ln2_v<float> + std::log(sum);
  }
}

void attend(const Problem& p, const Tensors& t, const Task& task, const Tiles& tiles) {
  load_queries(p, t, task, tiles);
  const std::int64_t dim = p.v_dim();
  std::fill_n(tiles.o, dim * kTileQ, 0.0F);
  std::fill_n(tiles.max, kTileQ, -kInfinity);
  std::fill_n(tiles.sum, kTileQ, 0.0F);
  const auto& [sequence, first_query, queries, visible] = task.tile;
  const std::int64_t own = sequence.own_key(first_query);
  for (std::int64_t first_key = visible.first; first_key < visible.end; first_key += kTileKv) {
    const std::int64_t keys = std::min(kTileKv, visible.end - first_key);
    const std::int64_t rows = (keys + kTileRows - 1) / kTileRows * kTileRows;
    load_keys_and_values(p, t, sequence, task.kv_head, first_key, keys, tiles.k, tiles.v);
    // S^T = K Q^T [keys, kTileQ]; rows past `keys` are computed from what the tile last held, and not used.
    multiply_tile({tiles.k, p.head_dim, 1}, tiles.q, kTileQ, tiles.p, kTileQ, rows, task.columns, p.head_dim, false);
    if (p.soft_cap > 0) cap_scores(p, keys, tiles.p);
    const bool window_begins = p.window_left >= 0 && first_key < own + queries - 1 - p.window_left;
    if (p.causal && (first_key + keys - 1 > own || window_begins)) mask(p, own, first_key, keys, tiles.p);
    softmax_step(dim, keys, task.columns, tiles);
    // O^T += V^T P^T [v_dim, kTileQ]
    multiply_tile({tiles.v, 1, dim}, tiles.p, kTileQ, tiles.o, kTileQ, dim, task.columns, keys, true);
  }
  store_output(p, t, task, tiles);
}

std::size_t tiles_bytes(const Problem& p) { return static_cast<std::size_t>(Tiles::floats(p)) * sizeof(float); }

// For as many threads as may run here at once.
std::size_t workspace_bytes(const Problem& p) { return static_cast<std::size_t>(omp_get_num_procs()) * tiles_bytes(p); }

int usable_threads(const Problem& p, const Launch& launch) {
  return std::min(launch.threads, static_cast<int>(launch.workspace.size() / tiles_bytes(p)));
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  const std::vector<QueryTile> queries = query_tiles(p, t);
  const std::int64_t tasks = std::ssize(queries) * p.q_heads;
#pragma omp parallel num_threads(usable_threads(p, launch))
  {
    const Tiles tiles(reinterpret_cast<float*>(launch.workspace.data()) + omp_get_thread_num() * Tiles::floats(p), p);
#pragma omp for schedule(dynamic)
    for (std::int64_t index = 0; index < tasks; ++index) {
      const QueryTile& tile = queries[static_cast<std::size_t>(index / p.q_heads)];
      const std::int64_t head = index % p.q_heads;
      attend(p, t,
             {.tile = tile,
              .head = head,
              .kv_head = head / (p.q_heads / p.kv_heads),
              .columns = (tile.queries + kLanes - 1) / kLanes * kLanes},
             tiles);
    }
  }
}

const RegisterVariant<AttentionPrefill> registered{{
    .name = "cpu.flash",
    .summary = "tiles of 96 queries by 64 keys, online softmax, one query per SIMD lane",
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
