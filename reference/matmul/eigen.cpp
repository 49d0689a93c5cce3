// matmul / cpu.eigen: half storage, float arithmetic, on the host's vector units.
//
// Each thread takes 64 rows of W at a time, converts them piece by piece to float in its own cache, and multiplies each
// piece with all tokens it is to serve; W as a whole is never held in float. X is converted once (float_tokens.hpp):
// with one token per SIMD lane, W serves as it lies in memory. The last few tokens, which would leave most of a vector
// idle, are dot products by Eigen: all there is when m is small, and each row of W is then read once, end to end. Of a
// W stored [k, n] a piece comes as it lies, rows of k, and is read the other way round.
#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/eigen.hpp"
#include "reference/common/tile_product.hpp"
#include "reference/matmul/float_tokens.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;
using Tensors = MatmulTensors;

constexpr std::int64_t kPanelRows = 64;    // of W; 64 KiB at kPanelDepth
constexpr std::int64_t kPanelDepth = 256;  // 48 columns of X^T at that depth fill a 48 KiB L1 cache
constexpr std::int64_t kRowPiece = 1024;   // of a single row of W: stays in L1 with those of X
constexpr std::int64_t kBlockTokens = std::int64_t{10} * kTileColumns;  // the sums of a panel: 120 KiB

static_assert(kPanelRows % kTileRows == 0);
static_assert(kPanelRows * kPanelDepth >= std::max<std::int64_t>(FloatTokens::kScratchFloats, kRowPiece));

// Memory of one thread.
struct Scratch {
  float* panel;    // [kPanelRows, kPanelDepth]    a piece of W
  float* sums;     // [kPanelRows, kBlockTokens]   Y^T of tokens in vectors
  float* singles;  // [kMostSingles, kPanelRows]   Y of single tokens

  static constexpr std::int64_t kFloats = kPanelRows * (kPanelDepth + kBlockTokens + TokenSplit::kMostSingles);

  explicit Scratch(float* memory)
      : panel(memory), sums(panel + kPanelRows * kPanelDepth), singles(sums + kPanelRows * kBlockTokens) {}
};

// What a thread computes at a time: some rows of W against some tokens.
struct Part {
  std::int64_t first_row;
  std::int64_t rows;
  std::int64_t first_token;  // in vectors
  std::int64_t end_token;
  std::int64_t singles;  // all single tokens, or none
};

Part make_part(const Problem& p, const TokenSplit& split, std::int64_t panel, std::int64_t block, bool last_block) {
  return {.first_row = panel * kPanelRows,
          .rows = std::min(kPanelRows, p.n - panel * kPanelRows),
          .first_token = block * kBlockTokens,
          .end_token = std::min((block + 1) * kBlockTokens, split.in_vectors),
          .singles = last_block ? split.singles : 0};
}

// Elements begin, ..., begin + depth - 1 of a part's rows of W in float, in memory as W's.
TileView load_piece(const Problem& p, const void* w, const Part& part, std::int64_t begin, std::int64_t depth,
                    float* panel) {
  if (p.w_transposed) {
    for (std::int64_t i = 0; i < depth; ++i)
      load_floats(p.dtype, w, (begin + i) * p.n + part.first_row, part.rows, panel + i * kPanelRows);
    return {panel, 1, kPanelRows};
  }
  for (std::int64_t j = 0; j < part.rows; ++j)
    load_floats(p.dtype, w, (part.first_row + j) * p.k + begin, depth, panel + j * depth);
  return {panel, depth, 1};
}

// Adds the products of the single tokens with `rows` rows of W, elements begin, ..., begin + depth - 1 of each.
void add_singles(const FloatTokens& x, std::int64_t singles, const float* w, std::int64_t rows, std::int64_t begin,
                 std::int64_t depth, float* sums) {
  using Row = Eigen::Map<const Eigen::VectorXf>;
  for (std::int64_t j = 0; j < rows; ++j) {
    for (std::int64_t i = 0; i < singles; ++i)
      sums[i * kPanelRows + j] += Row(w + j * depth, depth).dot(Row(x.single(i) + begin, depth));
  }
}

// The same with a piece of a W stored [k, n].
void add_singles_kn(const FloatTokens& x, std::int64_t singles, const float* w, std::int64_t rows, std::int64_t begin,
                    std::int64_t depth, float* sums) {
  const Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>> piece(w, rows, depth,
                                                                         Eigen::OuterStride<>(kPanelRows));
  for (std::int64_t i = 0; i < singles; ++i)
    Eigen::Map<Eigen::VectorXf>(sums + i * kPanelRows, rows).noalias() +=
        piece * Eigen::Map<const Eigen::VectorXf>(x.single(i) + begin, depth);
}

void multiply_panel(const Problem& p, const void* w, const FloatTokens& x, const Part& part, const Scratch& scratch) {
  for (std::int64_t begin = 0; begin < p.k; begin += kPanelDepth) {
    const std::int64_t depth = std::min(kPanelDepth, p.k - begin);
    const TileView piece = load_piece(p, w, part, begin, depth, scratch.panel);
    // Whole slivers of rows: those past part.rows hold what an earlier panel left there; their sums are not stored.
    const std::int64_t rows = (part.rows + kTileRows - 1) / kTileRows * kTileRows;
    for (std::int64_t token = part.first_token; token < part.end_token; token += kTileColumns) {
      const std::int64_t columns = x.block_columns(token);
      multiply_tile(piece, x.block(token) + begin * columns, columns, scratch.sums + token - part.first_token,
                    kBlockTokens, rows, columns, depth, begin > 0);
    }
    const auto add = p.w_transposed ? &add_singles_kn : &add_singles;
    add(x, part.singles, scratch.panel, part.rows, begin, depth, scratch.singles);
  }
}

// The same when all tokens are single and W is stored [n, k]: row by row, so that W streams.
void multiply_rows(const Problem& p, const void* w, const FloatTokens& x, const Part& part, const Scratch& scratch) {
  for (std::int64_t j = 0; j < part.rows; ++j) {
    for (std::int64_t begin = 0; begin < p.k; begin += kRowPiece) {
      const std::int64_t depth = std::min(kRowPiece, p.k - begin);
      load_floats(p.dtype, w, (part.first_row + j) * p.k + begin, depth, scratch.panel);
      add_singles(x, part.singles, scratch.panel, 1, begin, depth, scratch.singles + j);
    }
  }
}

// Rounds the sums and writes them to Y.
void store_part(const Problem& p, void* y, const TokenSplit& split, const Part& part, const Scratch& scratch) {
  float* const rows = scratch.panel;  // [tokens, kPanelRows]; W is no longer in use
  for (std::int64_t token = part.first_token; token < part.end_token; token += kTileColumns) {
    const std::int64_t count = std::min<std::int64_t>(kTileColumns, part.end_token - token);
    transpose_tile(scratch.sums + token - part.first_token, kBlockTokens, part.rows, count, rows, kPanelRows);
    for (std::int64_t i = 0; i < count; ++i)
      store_floats(p.dtype, rows + i * kPanelRows, part.rows, y, (token + i) * p.n + part.first_row);
  }
  for (std::int64_t i = 0; i < part.singles; ++i) {
    const std::int64_t token = split.in_vectors + i;
    store_floats(p.dtype, scratch.singles + i * kPanelRows, part.rows, y, token * p.n + part.first_row);
  }
}

std::optional<std::string> unsupported(const Problem& p) {
  if (p.bits != 16) return "bits must be 16, got " + std::to_string(p.bits);
  return std::nullopt;
}

// X in float, and scratch for as many threads as may run here at once.
std::size_t workspace_bytes(const Problem& p) {
  return static_cast<std::size_t>(FloatTokens::floats(p) + omp_get_num_procs() * Scratch::kFloats) * sizeof(float);
}

int usable_threads(const Problem& p, const Launch& launch) {
  const auto room = static_cast<std::int64_t>(launch.workspace.size() / sizeof(float)) - FloatTokens::floats(p);
  return std::min(launch.threads, static_cast<int>(room / Scratch::kFloats));
}

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  auto* const memory = reinterpret_cast<float*>(launch.workspace.data());
  const FloatTokens x(memory, p);
  const TokenSplit& split = x.split();
  float* const scratch_memory = memory + FloatTokens::floats(p);
  const std::int64_t panels = (p.n + kPanelRows - 1) / kPanelRows;
  const std::int64_t blocks = std::max<std::int64_t>(1, (split.columns + kBlockTokens - 1) / kBlockTokens);
#pragma omp parallel num_threads(usable_threads(p, launch))
  {
    const Scratch scratch(scratch_memory + omp_get_thread_num() * Scratch::kFloats);
#pragma omp for schedule(dynamic) nowait
    for (std::int64_t token = 0; token < split.columns; token += kTileColumns)
      x.fill_block(p, t.x, token, scratch.panel);
#pragma omp for
    for (std::int64_t i = 0; i < split.singles; ++i) x.fill_single(p, t.x, i);
#pragma omp for collapse(2) schedule(dynamic)
    for (std::int64_t panel = 0; panel < panels; ++panel) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        const Part part = make_part(p, split, panel, block, block + 1 == blocks);
        std::fill_n(scratch.singles, part.singles * kPanelRows, 0.0F);
        if (split.in_vectors > 0 || p.w_transposed) {
          multiply_panel(p, t.w, x, part, scratch);
        } else {
          multiply_rows(p, t.w, x, part, scratch);
        }
        store_part(p, t.y, split, part, scratch);
      }
    }
  }
}

const RegisterVariant<Matmul> registered{{
    .name = "cpu.eigen",
    .summary = "panels of W to float in cache; tiles of tokens, and Eigen's dot products for the last few",
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
