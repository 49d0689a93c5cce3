#include "reference/common/attention_fields.hpp"

namespace inferometer {

void check_heads(std::int64_t q_heads, std::int64_t kv_heads) {
  if (q_heads % kv_heads != 0)
    throw ProblemError("q_heads", "q_heads must be a multiple of kv_heads, got " + std::to_string(q_heads) + " and " +
                                      std::to_string(kv_heads));
}

void check_soft_cap(double soft_cap) {
  constexpr double kLeastSoftCap = 1e-3;  // below it a cap leaves no score
  if (soft_cap != 0 && soft_cap < kLeastSoftCap)
    throw ProblemError("soft_cap", "soft_cap must be 0 or at least 0.001, got " + to_string(Value(soft_cap)));
}

void check_row_stride(const std::string& name, std::int64_t stride, std::int64_t kv_heads, std::int64_t dim) {
  constexpr std::int64_t kRowAlignment = 8;  // elements
  const std::int64_t heads = kv_heads * dim;
  if (stride != 0 && (stride % kRowAlignment != 0 || stride < heads))
    throw ProblemError(name, name + " must be 0 or a multiple of 8 from kv_heads times the elements of a head, " +
                                 std::to_string(heads) + ", on, got " + std::to_string(stride));
}

}  // namespace inferometer
