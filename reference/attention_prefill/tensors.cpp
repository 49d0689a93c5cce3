#include "reference/attention_prefill/tensors.hpp"

#include <cstddef>
#include <cstdint>

namespace inferometer {
namespace {

using Problem = AttentionPrefillProblem;
using Shape = std::vector<std::int64_t>;

// Where a tensor stands among them.
struct Order {
  std::size_t q = 0, k = 1, v = 2, cu_q_lens = 3, cu_kv_lens = 4, block_table, o, lse;

  explicit Order(const Problem& p) {
    block_table = p.ragged() ? 5 : 3;
    o = p.paged() ? block_table + 1 : block_table;
    lse = o + 1;
  }
};

Shape query_shape(const Problem& p, std::int64_t dim) {
  if (p.ragged()) return {p.total_q(), p.q_heads, dim};
  return {p.batch, p.q_len, p.q_heads, dim};
}

// Padded rows show no heads: these end before the row does.
Shape cache_shape(const Problem& p, std::int64_t dim, std::int64_t stride) {
  Shape shape;
  if (p.paged()) {
    shape = {pool_blocks(key_lengths(p), p.block_size), p.block_size};
  } else if (p.ragged()) {
    shape = {p.total_kv()};
  } else {
    shape = {p.batch, p.kv_len};
  }
  if (stride != p.kv_heads * dim) {
    shape.push_back(stride);
  } else {
    shape.insert(shape.end(), {p.kv_heads, dim});
  }
  return shape;
}

std::vector<ElementRange> unused_of_cache(const Problem& p, const TensorSpec& cache, std::int64_t dim,
                                          std::int64_t stride) {
  std::vector<ElementRange> unused;
  if (p.paged()) unused = elements_of_slots(free_block_slots(key_lengths(p), p.block_size), p.block_size, stride);
  add_row_padding(p.kv_heads * dim, stride, cache.elements(), unused);
  return unused;
}

// [lengths + 1]: 0, and the sum up to each length.
std::vector<std::int32_t> prefix_sums(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int32_t> sums{0};
  for (const std::int64_t length : lengths) sums.push_back(sums.back() + static_cast<std::int32_t>(length));
  return sums;
}

}  // namespace

SequenceLengths key_lengths(const Problem& p) { return {.count = p.batch, .common = p.kv_len, .each = p.kv_lens}; }

std::vector<TensorSpec> prefill_tensors(const Problem& p) {
  const Role cache = p.paged() ? Role::kv_pool : Role::input;
  std::vector<TensorSpec> specs = {
      {.name = "q", .dtype = p.dtype, .shape = query_shape(p, p.head_dim)},
      {.name = "k", .role = cache, .dtype = p.dtype, .shape = cache_shape(p, p.head_dim, p.k_stride())},
      {.name = "v", .role = cache, .dtype = p.dtype, .shape = cache_shape(p, p.v_dim(), p.v_stride())}};
  if (p.ragged()) {
    specs.push_back({.name = "cu_q_lens", .dtype = Dtype::i32, .shape = {p.batch + 1}});
    specs.push_back({.name = "cu_kv_lens", .dtype = Dtype::i32, .shape = {p.batch + 1}});
  }
  if (p.paged()) specs.push_back({.name = "block_table", .dtype = Dtype::i32, .shape = {p.batch, p.max_blocks()}});
  const Shape lse = p.ragged() ? Shape{p.q_heads, p.total_q()} : Shape{p.batch, p.q_heads, p.q_len};
  specs.push_back({.name = "o", .role = Role::output, .dtype = p.dtype, .shape = query_shape(p, p.v_dim())});
  specs.push_back({.name = "lse", .role = Role::output, .dtype = Dtype::f32, .shape = lse});
  return specs;
}

void add_prefill_contents(const Problem& p, std::vector<TensorSpec>& specs) {
  const Order at(p);
  specs[at.k].unused = unused_of_cache(p, specs[at.k], p.head_dim, p.k_stride());
  specs[at.v].unused = unused_of_cache(p, specs[at.v], p.v_dim(), p.v_stride());
  if (p.ragged()) {
    specs[at.cu_q_lens].source = prefix_sums(p.q_lens);
    specs[at.cu_kv_lens].source = prefix_sums(p.kv_lens);
  }
  if (p.paged()) specs[at.block_table].source = block_table(key_lengths(p), p.block_size, p.max_blocks());
}

AttentionPrefillTensors bind_prefill(const Problem& p, std::span<void* const> pointers) {
  const Order at(p);
  const auto integers = [&](bool present, std::size_t index) {
    return present ? static_cast<const std::int32_t*>(pointers[index]) : nullptr;
  };
  return {.q = pointers[at.q],
          .k = pointers[at.k],
          .v = pointers[at.v],
          .cu_q_lens = integers(p.ragged(), at.cu_q_lens),
          .cu_kv_lens = integers(p.ragged(), at.cu_kv_lens),
          .block_table = integers(p.paged(), at.block_table),
          .o = pointers[at.o],
          .lse = static_cast<float*>(pointers[at.lse])};
}

}  // namespace inferometer
