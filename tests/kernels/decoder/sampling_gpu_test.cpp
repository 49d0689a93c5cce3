// Drawing the next token on the device.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/operator/dtype.hpp"
#include "kernels/decoder/next_token.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {
namespace {

// One row of logits for `rows` rows that differ in their sequences.
class Sampler {
 public:
  Sampler(const std::vector<float>& logits, std::int32_t rows) : device_(gpu()), memory_(*device_), rows_(rows) {
    std::vector<std::uint16_t> bits;
    std::vector<std::int32_t> order(static_cast<std::size_t>(rows));
    std::vector<std::uint64_t> keys;
    for (std::int32_t row = 0; row < rows; ++row) {
      for (const float logit : logits) bits.push_back(f16_bits(logit));
      keys.push_back(0x1234567ULL * static_cast<std::uint64_t>(row + 1));
    }
    std::iota(order.begin(), order.end(), 0);
    logits_ = upload(bits, "logits");
    places_ = upload(order, "places");
    tokens_ = upload(order, "tokens");
    positions_ = upload(order, "positions");
    keys_ = upload(keys, "keys");
    next_ = upload(std::vector<std::int32_t>(order.size(), -1), "next");
    args_ = {.logits = static_cast<const __half*>(logits_.get()),
             .vocabulary = static_cast<std::int32_t>(logits.size()),
             .rows = rows,
             .places = static_cast<const std::int32_t*>(places_.get()),
             .next = static_cast<std::int32_t*>(next_.get())};
  }
  ~Sampler() { CHECK(memory_.violations() == std::vector<std::string>()); }
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  std::vector<std::int32_t> greedy() {
    decoder::launch_greedy(args_, device_->launch().stream);
    return read();
  }
  std::vector<std::int32_t> top_p(double temperature, double share) {
    decoder::launch_top_p(args_,
                          {.inverse_temperature = static_cast<float>(1 / temperature),
                           .top_p = share,
                           .keys = static_cast<const std::uint64_t*>(keys_.get()),
                           .tokens = static_cast<const std::int32_t*>(tokens_.get()),
                           .positions = static_cast<const std::int32_t*>(positions_.get())},
                          device_->launch().stream);
    return read();
  }

 private:
  template <class T>
  std::shared_ptr<void> upload(const std::vector<T>& values, const char* name) {
    auto memory = memory_.allocate(values.size() * sizeof(T), name);
    device_->copy_from_host(memory.get(), values.data(), values.size() * sizeof(T));
    return memory;
  }
  std::vector<std::int32_t> read() {
    std::vector<std::int32_t> next(static_cast<std::size_t>(rows_));
    device_->synchronize();
    device_->copy_to_host(next.data(), next_.get(), next.size() * sizeof(next[0]));
    return next;
  }

  std::unique_ptr<Device> device_;
  GuardedMemory memory_;
  std::int32_t rows_;
  std::shared_ptr<void> logits_, places_, tokens_, positions_, keys_, next_;
  decoder::NextTokenArgs args_;
};

TEST_CASE("decoder: the greedy token is the first of the greatest, negative and infinite logits included",
          "[decoder][gpu]") {
  for (const std::size_t size : {3001, 80008}) {  // one by one, and eight at a time
    std::vector<float> logits(size, -5.0F);
    logits[1700] = logits[2900] = -1.0F;
    CHECK(Sampler(logits, 1).greedy().front() == 1700);
    logits[size - 1] = std::numeric_limits<float>::infinity();
    CHECK(Sampler(logits, 1).greedy().front() == static_cast<std::int32_t>(size - 1));
    logits.assign(size, -std::numeric_limits<float>::infinity());
    CHECK(Sampler(logits, 1).greedy().front() == 0);
  }
}

TEST_CASE("decoder: tokens are drawn with the chances of their softmax, the same in every call", "[decoder][gpu]") {
  // Chances 0.5, 0.25, 0.125, 0.125 at places of their own in a vocabulary of tokens that are never drawn.
  std::vector<float> logits(5000, -60000.0F);
  const std::vector<std::size_t> tokens{4321, 17, 2500, 1023};
  const std::vector<double> chances{0.5, 0.25, 0.125, 0.125};
  for (std::size_t i = 0; i < tokens.size(); ++i) logits[tokens[i]] = static_cast<float>(std::log(chances[i]) + 3);
  constexpr int kDraws = 4000;
  Sampler sampler(logits, kDraws);
  const std::vector<std::int32_t> drawn = sampler.top_p(1, 1);
  CHECK(sampler.top_p(1, 1) == drawn);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto count =
        static_cast<double>(std::count(drawn.begin(), drawn.end(), static_cast<std::int32_t>(tokens[i])));
    // Five standard deviations of a binomial count; rounding of the logits to f16 moves chances by 1e-3.
    CHECK(std::abs(count - kDraws * chances[i]) <
          5 * std::sqrt(kDraws * chances[i] * (1 - chances[i])) + 1e-3 * kDraws);
  }
}

TEST_CASE("decoder: a nucleus ends with the token that reaches its share, and a temperature sharpens",
          "[decoder][gpu]") {
  std::vector<float> logits(5000, -60000.0F);
  logits[10] = static_cast<float>(std::log(0.5));
  logits[20] = static_cast<float>(std::log(0.3));
  logits[30] = static_cast<float>(std::log(0.2));
  constexpr int kDraws = 2000;
  Sampler sampler(logits, kDraws);
  const auto count_of = [](const std::vector<std::int32_t>& drawn, std::int32_t token) {
    return std::count(drawn.begin(), drawn.end(), token);
  };
  CHECK(count_of(sampler.top_p(1, 0.4), 10) == kDraws);
  const std::vector<std::int32_t> two = sampler.top_p(1, 0.7);
  CHECK(count_of(two, 30) == 0);
  CHECK(std::abs(static_cast<double>(count_of(two, 10)) - kDraws * 0.625) < 5 * std::sqrt(kDraws * 0.625 * 0.375) + 2);
  CHECK(count_of(sampler.top_p(1, 0.9), 30) > 0);
  CHECK(count_of(sampler.top_p(1, 1e-9), 10) == kDraws);
  CHECK(count_of(sampler.top_p(0.01, 1), 10) == kDraws);
}

}  // namespace
}  // namespace inferometer::test
