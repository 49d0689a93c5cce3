// Decode attention that turns and stores new tokens itself, beside RoPE with append and attention as two kernels.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/attention_decode/decode_launch.hpp"
#include "kernels/decoder/operator_launch.hpp"
#include "kernels/decoder/rope_append.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"
#include "tests/support/rel_l2.hpp"

namespace inferometer::test {
namespace {

using decoder::OperatorLaunch;
using decoder::RopeAppendArgs;

constexpr float kEps = 1e-5F;
constexpr std::uint16_t kNan = 0xffff;

struct Case {
  std::vector<std::int64_t> lengths;  // with the new token; 0: a row that pads the step
  std::int64_t q_heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t head_dim = 128;
  std::int64_t block_size = 16;
  bool bias = false;
  bool head_norms = false;
  bool late_norm = false;
  std::int64_t splits = 0;
};

using Bits = std::vector<std::uint16_t>;

struct Results {
  Bits o;
  Bits k;
  Bits v;
  std::vector<float> lse;
  std::vector<float> inverse;
};

class NewTokensRun {
 public:
  explicit NewTokensRun(const Case& c)
      : c_(c),
        device_(gpu()),
        memory_(*device_),
        rows_(std::ssize(c.lengths)),
        heads_(c.q_heads + 2 * c.kv_heads),
        longest_(std::max<std::int64_t>(*std::max_element(c.lengths.begin(), c.lengths.end()), 1)),
        pages_((longest_ + c.block_size - 1) / c.block_size) {
    // Block 0 is nobody's: a row that pads the step names it.
    elements_ = (rows_ * pages_ + 1) * c.block_size * c.kv_heads * c.head_dim;
    qkv_ = normal(rows_ * heads_ * c.head_dim, 1);
    bias_ = normal(heads_ * c.head_dim, 0.5);
    q_gain_ = normal(c.head_dim, 1);
    k_gain_ = normal(c.head_dim, 1);
    squares_ = upload(std::vector<float>(static_cast<std::size_t>(rows_ * kParts), 40.0F));
    scale_ = upload(std::vector<float>(static_cast<std::size_t>(rows_), 1.25F));
    inverse_ = upload(std::vector<float>(static_cast<std::size_t>(rows_), 0.0F));
    k_ = normal(elements_, 1);
    v_ = normal(elements_, 1);
    q_ = normal(rows_ * c.q_heads * c.head_dim, 1);
    o_ = normal(rows_ * c.q_heads * c.head_dim, 1);
    lse_ = upload(std::vector<float>(static_cast<std::size_t>(rows_ * c.q_heads)));
    std::vector<std::int32_t> lengths(c.lengths.begin(), c.lengths.end());
    std::vector<std::int32_t> positions;
    std::vector<std::int32_t> table;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t length = c.lengths[static_cast<std::size_t>(row)];
      positions.push_back(static_cast<std::int32_t>(length) - 1);
      for (std::int64_t page = 0; page < pages_; ++page)  // neither a row's blocks nor their order are neighbours
        table.push_back(length == 0 ? 0 : static_cast<std::int32_t>((pages_ - 1 - page) * rows_ + row + 1));
      for (std::int64_t i = 0; length > 0 && i < c.kv_heads * c.head_dim; ++i)
        slots_.push_back(slot(table, row, length - 1) * c.kv_heads * c.head_dim + i);
    }
    std::vector<std::int32_t> token_rows(static_cast<std::size_t>(rows_));
    std::iota(token_rows.begin(), token_rows.end(), 0);
    std::vector<float2> turns;
    for (std::int64_t position = 0; position < longest_; ++position)
      for (std::int64_t pair = 0; pair < c.head_dim / 2; ++pair) {
        const double angle = static_cast<double>(position) *
                             std::pow(5e5, -2.0 * static_cast<double>(pair) / static_cast<double>(c.head_dim));
        turns.push_back({static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))});
      }
    lengths_ = upload(lengths);
    positions_ = upload(positions);
    table_ = upload(table);
    token_rows_ = upload(token_rows);
    turns_ = upload(turns);
    // What slots hold before is nobody's business: an attention that reads a new token's gives NaN.
    for (const auto& pool : {k_, v_}) {
      Bits bits = download<std::uint16_t>(pool, elements_);
      for (const std::int64_t i : slots_) bits[static_cast<std::size_t>(i)] = kNan;
      old_.push_back(bits);
    }
    AttentionDecodeProblem problem;
    problem.batch = rows_;
    problem.context = pages_ * c.block_size;
    problem.contexts.assign(static_cast<std::size_t>(rows_), longest_);
    problem.q_heads = c.q_heads;
    problem.kv_heads = c.kv_heads;
    problem.head_dim = c.head_dim;
    problem.block_size = c.block_size;
    problem.splits = c.splits;
    REQUIRE(decode::takes_new_tokens(problem));
    launch_ = std::make_unique<OperatorLaunch<AttentionDecode>>("cuda.paged", problem, tensors(), stream(), memory_);
    decode::prepare_new_tokens(launch_->launch(stream()));
  }
  ~NewTokensRun() { CHECK(memory_.violations() == std::vector<std::string>()); }
  NewTokensRun(const NewTokensRun&) = delete;
  NewTokensRun& operator=(const NewTokensRun&) = delete;

  Results run(bool in_attention) {
    device_->synchronize();
    device_->copy_from_host(k_.get(), old_[0].data(), old_[0].size() * 2);
    device_->copy_from_host(v_.get(), old_[1].data(), old_[1].size() * 2);
    const RopeAppendArgs rope = rope_args();
    if (in_attention) {
      decode::launch_new_tokens(launch_->problem(), tensors(),
                                {.qkv = rope.qkv,
                                 .norm = rope.norm,
                                 .bias = rope.bias,
                                 .q_gain = rope.q_gain,
                                 .k_gain = rope.k_gain,
                                 .turns = rope.turns,
                                 .k = rope.to.k,
                                 .v = rope.to.v,
                                 .eps = rope.eps},
                                launch_->launch(stream()));
    } else {
      decoder::launch_rope_append(rope, stream());
      launch_->run(tensors(), stream());
    }
    device_->synchronize();
    return {download<std::uint16_t>(o_, rows_ * c_.q_heads * c_.head_dim), download<std::uint16_t>(k_, elements_),
            download<std::uint16_t>(v_, elements_), download<float>(lse_, rows_ * c_.q_heads),
            download<float>(inverse_, rows_)};
  }

  const std::vector<std::int64_t>& slots() const { return slots_; }  // elements of new tokens

 private:
  static constexpr int kParts = 70;

  Stream stream() const { return device_->launch().stream; }

  std::int64_t slot(const std::vector<std::int32_t>& table, std::int64_t row, std::int64_t position) const {
    const std::int64_t block = table[static_cast<std::size_t>(row * pages_ + position / c_.block_size)];
    return block * c_.block_size + position % c_.block_size;
  }

  std::shared_ptr<void> normal(std::int64_t count, double stddev) {
    auto memory = memory_.allocate(static_cast<std::size_t>(count) * 2, "halves");
    launch_fill_normal(Dtype::f16, memory.get(), count, stream_key(9, seed_++), normal_scale(stddev), 0, stream());
    device_->synchronize();
    return memory;
  }
  template <class T>
  std::shared_ptr<void> upload(const std::vector<T>& values) {
    auto memory = memory_.allocate(values.size() * sizeof(T), "values");
    device_->copy_from_host(memory.get(), values.data(), values.size() * sizeof(T));
    return memory;
  }
  template <class T>
  std::vector<T> download(const std::shared_ptr<void>& memory, std::int64_t count) const {
    std::vector<T> values(static_cast<std::size_t>(count));
    device_->copy_to_host(values.data(), memory.get(), values.size() * sizeof(T));
    return values;
  }
  template <class T>
  static T* as(const std::shared_ptr<void>& memory) {
    return static_cast<T*>(memory.get());
  }

  RopeAppendArgs rope_args() const {
    RopeAppendArgs rope{.qkv = as<__half>(qkv_),
                        .bias = c_.bias ? as<__half>(bias_) : nullptr,
                        .q_gain = c_.head_norms ? as<__half>(q_gain_) : nullptr,
                        .k_gain = c_.head_norms ? as<__half>(k_gain_) : nullptr,
                        .turns = as<float2>(turns_),
                        .positions = as<std::int32_t>(positions_),
                        .q = as<__half>(q_),
                        .to = {.k = as<__half>(k_),
                               .v = as<__half>(v_),
                               .rows = as<std::int32_t>(token_rows_),
                               .table = as<std::int32_t>(table_),
                               .max_blocks = static_cast<std::int32_t>(pages_),
                               .block_size = FastDivide(static_cast<std::uint32_t>(c_.block_size))},
                        .tokens = static_cast<std::int32_t>(rows_),
                        .q_heads = static_cast<std::int32_t>(c_.q_heads),
                        .kv_heads = static_cast<std::int32_t>(c_.kv_heads),
                        .head_dim = static_cast<std::int32_t>(c_.head_dim),
                        .eps = kEps};
    if (c_.late_norm)
      rope.norm = {.squares = as<float>(squares_),
                   .scale = as<float>(scale_),
                   .inverse = as<float>(inverse_),
                   .parts = kParts,
                   .hidden = 4096,
                   .eps = kEps};
    return rope;
  }

  AttentionDecodeTensors tensors() const {
    return {.q = q_.get(),
            .k = k_.get(),
            .v = v_.get(),
            .seq_lens = as<std::int32_t>(lengths_),
            .block_table = as<std::int32_t>(table_),
            .o = o_.get(),
            .lse = as<float>(lse_)};
  }

  Case c_;
  std::unique_ptr<Device> device_;
  GuardedMemory memory_;
  std::int64_t rows_;
  std::int64_t heads_;
  std::int64_t longest_;
  std::int64_t pages_;
  std::int64_t elements_ = 0;
  std::uint64_t seed_ = 0;
  std::shared_ptr<void> qkv_, bias_, q_gain_, k_gain_, squares_, scale_, inverse_;
  std::shared_ptr<void> k_, v_, q_, o_, lse_, lengths_, positions_, table_, token_rows_, turns_;
  std::vector<std::int64_t> slots_;
  std::vector<Bits> old_;
  std::unique_ptr<OperatorLaunch<AttentionDecode>> launch_;
};

// Of values that one rounding parts: a unit in the last place.
bool is_near(std::uint16_t got, std::uint16_t expected) {
  const float a = f16_value(got);
  const float b = f16_value(expected);
  return std::fabs(a - b) <= std::max(std::fabs(b) * 0x1p-9F, 0x1p-14F);  // false for NaN
}

void check_pool(const Bits& got, const Bits& expected, const std::vector<std::int64_t>& slots) {
  Bits others[2] = {got, expected};
  for (const std::int64_t at : slots) {
    const auto i = static_cast<std::size_t>(at);
    if (!is_near(got[i], expected[i])) {
      INFO("element " << at << ": " << f16_value(got[i]) << ", expected " << f16_value(expected[i]));
      FAIL();
    }
    for (Bits& bits : others) bits[i] = 0;
  }
  CHECK(others[0] == others[1]);
}

void check_case(const Case& c) {
  INFO("rows " << c.lengths.size() << ", first length " << c.lengths.front() << ", heads " << c.q_heads << " / "
               << c.kv_heads << " of " << c.head_dim << ", blocks of " << c.block_size << ", splits " << c.splits);
  NewTokensRun run(c);
  const Results expected = run.run(false);
  const Results got = run.run(true);
  CHECK(rel_l2(got.o, expected.o, &f16_value) < 5e-4);
  for (std::size_t i = 0; i < got.lse.size(); ++i)
    if (!(got.lse[i] == expected.lse[i])) REQUIRE(std::fabs(got.lse[i] - expected.lse[i]) < 5e-3F);
  check_pool(got.k, expected.k, run.slots());
  check_pool(got.v, expected.v, run.slots());
  for (std::size_t i = 0; i < got.inverse.size(); ++i)
    REQUIRE(std::fabs(got.inverse[i] - expected.inverse[i]) <= 1e-6F * expected.inverse[i]);
  for (int again = 0; again < 3; ++again) {
    const Results other = run.run(true);
    CHECK(other.o == got.o);
    CHECK(other.k == got.k);
    CHECK(other.v == got.v);
  }
}

std::vector<std::int64_t> lengths_to(std::int64_t rows, std::int64_t longest) {
  std::vector<std::int64_t> lengths{longest};
  while (std::ssize(lengths) < rows) lengths.push_back(lengths.size() * 977 % static_cast<std::size_t>(longest) + 1);
  return lengths;
}

}  // namespace

TEST_CASE("decoder: attention turns and stores one new token as two kernels do", "[decoder][new_tokens][gpu]") {
  for (const std::int64_t length : {1, 2, 15, 16, 17, 32, 33, 64, 65, 128, 129, 255, 256, 257, 511, 1024, 2049, 4096})
    check_case({.lengths = {length}});
}

TEST_CASE("decoder: attention turns and stores new tokens of many rows", "[decoder][new_tokens][gpu]") {
  for (const std::int64_t rows : {2, 3, 8, 32}) check_case({.lengths = lengths_to(rows, 300), .late_norm = true});
  check_case({.lengths = lengths_to(128, 200)});
  check_case({.lengths = {40, 0, 97, 0}});
}

TEST_CASE("decoder: attention turns and stores new tokens with biases and norms of heads",
          "[decoder][new_tokens][gpu]") {
  check_case({.lengths = {200, 5}, .q_heads = 28, .kv_heads = 4, .bias = true, .late_norm = true});
  check_case({.lengths = {200, 31}, .q_heads = 32, .kv_heads = 8, .head_norms = true});
  check_case({.lengths = {77}, .q_heads = 16, .kv_heads = 1, .bias = true, .head_norms = true});
  check_case({.lengths = {150, 32}, .q_heads = 14, .kv_heads = 2, .head_dim = 64, .bias = true});
  check_case({.lengths = {150, 33}, .q_heads = 12, .kv_heads = 1, .head_dim = 64, .head_norms = true});
}

TEST_CASE("decoder: attention turns and stores new tokens in blocks of any size and parts of any number",
          "[decoder][new_tokens][gpu]") {
  for (const std::int64_t block_size : {1, 7, 16, 48, 256, 1024})
    check_case({.lengths = {300, 1, 121}, .block_size = block_size});
  for (const std::int64_t splits : {1, 2, 3, 8, 20}) check_case({.lengths = {530, 33}, .splits = splits});
  check_case({.lengths = {530, 33}, .q_heads = 4, .kv_heads = 4, .head_dim = 64, .splits = 5});
}

}  // namespace inferometer::test
