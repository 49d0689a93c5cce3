#include "reference/attention_decode/queries.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "harness/operator/generate.hpp"
#include "harness/operator/stored.hpp"
#include "reference/attention_decode/judged_rows.hpp"
#include "reference/kv_cache/judged_cache.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

constexpr double kShareOfOutput = 0.2;
constexpr double kMostLean = 0.95;
constexpr std::int64_t kNone = -1;

// Where the key of each query's own token lies, [batch, q_len]; page kNone for a query before its sequence's start.
std::vector<JudgedSlot> own_slots(const Problem& p, const Inputs& inputs) {
  std::vector<JudgedSlot> slots;
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t i = 0; i < p.q_len; ++i) {
      const std::int64_t token = p.context_of(b) - p.q_len + i;
      slots.push_back(token < 0 ? JudgedSlot{.page = kNone}
                                : judged_slot(inputs, p.block_size, p.max_blocks(), b, token));
    }
  return slots;
}

class Queries {
 public:
  Queries(const Problem& p, const std::vector<TensorSpec>& specs) : p_(p), slots_(own_slots(p, Inputs(specs, 0))) {
    for (const TensorSpec& spec : specs) {
      if (spec.dtype == Dtype::i32) break;  // behind Q, K, V and scales, which follow from the seed
      specs_.push_back(spec);
      specs_.back().unused.clear();
    }
  }

  template <Dtype kDtype>
  void fill(std::uint64_t seed, std::int64_t begin, std::int64_t count, Stored<kDtype>* elements) const {
    const Inputs inputs(specs_, seed);
    const std::int64_t end = begin + count;
    for (std::int64_t row = begin / p_.head_dim; row * p_.head_dim < end; ++row) {
      const Eigen::RowVectorXd query = query_of(inputs, row);
      const std::int64_t first = std::max(begin, row * p_.head_dim);
      const std::int64_t last = std::min(end, (row + 1) * p_.head_dim);
      for (std::int64_t i = first; i < last; ++i)
        elements[i - begin] = stored_element<kDtype>(static_cast<float>(query[i - row * p_.head_dim]));
    }
  }

 private:
  // Row of [batch, q_len, q_heads].
  Eigen::RowVectorXd query_of(const Inputs& inputs, std::int64_t row) const {
    const std::vector<float> random = inputs.read("q", row * p_.head_dim, p_.head_dim);
    Eigen::RowVectorXd g = Eigen::Map<const Eigen::RowVectorXf>(random.data(), p_.head_dim).cast<double>();
    const JudgedSlot slot = slots_[static_cast<std::size_t>(row / p_.q_heads)];
    if (slot.page == kNone) return g;
    const std::int64_t sequence = row / p_.q_heads / p_.q_len;
    const std::int64_t token = p_.context_of(sequence) - p_.q_len + row / p_.q_heads % p_.q_len;
    const std::int64_t keys = p_.window_left < 0 ? token + 1 : std::min(token + 1, p_.window_left + 1);
    const std::int64_t kv_head = row % p_.q_heads / (p_.q_heads / p_.kv_heads);
    const Eigen::RowVectorXd k = read_judged_token(p_, inputs, KeyOrValue::key, slot, kv_head);
    const double length = k.norm();
    if (length == 0) return g;
    const double score = std::min(newest_score(p_, keys), kMostLean * length);
    const double lean = score / length;
    return std::sqrt(1 - lean * lean) * g + lean * std::sqrt(static_cast<double>(p_.head_dim)) / length * k;
  }

  Problem p_;
  std::vector<JudgedSlot> slots_;
  std::vector<TensorSpec> specs_;
};

}  // namespace

double newest_score(const AttentionDecodeProblem& problem, std::int64_t keys) {
  const auto n = static_cast<double>(keys);
  if (problem.soft_cap > 0) return std::log(n) + 0.5;
  return std::max(0.0, 1 + std::log(kShareOfOutput * std::sqrt(n)));
}

Computed leaning_queries(const AttentionDecodeProblem& problem, const std::vector<TensorSpec>& specs) {
  const auto queries = std::make_shared<const Queries>(problem, specs);
  return {
      .fill =
          [queries, dtype = problem.dtype](std::uint64_t seed, std::int64_t begin, std::int64_t count, void* elements) {
            with_dtype(dtype, [&]<Dtype kDtype>() {
              if constexpr (kDtype != Dtype::i32 && kDtype != Dtype::u8)
                queries->fill<kDtype>(seed, begin, count, static_cast<Stored<kDtype>*>(elements));
            });
          },
      .row_elements = problem.q_heads * problem.head_dim};
}

}  // namespace inferometer
