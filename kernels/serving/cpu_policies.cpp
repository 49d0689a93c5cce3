// serving / cpu.<policy>: a decoder of a small shape on the CPU behind the engine, with random weights. Times are this
// host's, from the end of one step to the end of the next.
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "kernels/serving/serve.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostPoolBytes = std::int64_t{1} << 30;  // f16; the decoder keeps f32

class CpuServingModel : public ServingModel {
 public:
  CpuServingModel(PagedDecoder& decoder, int threads) : decoder_(decoder), threads_(threads), last_(Clock::now()) {}

  StepTime step(const StepBatch& batch, std::span<TokenId> next) override {
    const auto begin = Clock::now();
    for (const BlockCopy& copy : batch.copies) decoder_.copy_block(copy.source, copy.destination);
    parallel_for(std::ssize(batch.rows), threads_, [&](std::int64_t i) {
      const StepRow& row = batch.rows[static_cast<std::size_t>(i)];
      const TokenId token = decoder_.step(row.tokens, row.position, row.table);
      if (row.samples) next[static_cast<std::size_t>(i)] = token;
    });
    const auto now = Clock::now();
    const StepTime time{.ns = std::chrono::nanoseconds(now - last_).count(),
                        .busy_ns = std::chrono::nanoseconds(now - begin).count(),
                        .host_ns = std::chrono::nanoseconds(begin - last_).count()};
    last_ = now;
    return time;
  }

 private:
  using Clock = std::chrono::steady_clock;

  PagedDecoder& decoder_;
  int threads_;
  Clock::time_point last_;
};

template <ServingPolicy kPolicy>
std::optional<std::string> unsupported(const ServingProblem& p) {
  if (!p.is_small()) return "model must be tiny on a CPU, got " + p.model;
  if (p.pool_bytes > kMostPoolBytes)
    return "pool_bytes must be at most " + std::to_string(kMostPoolBytes) + " on a CPU, got " +
           std::to_string(p.pool_bytes);
  if (kPolicy == ServingPolicy::chunked) return budget_too_small(p);
  return std::nullopt;
}

std::shared_ptr<void> prepare(const ServingProblem& p, const ServingTensors&, const Launch&, Allocator&) {
  return std::make_shared<PagedDecoder>(SeededWeights(decoder_shape(p.model), kServingWeightSeed),
                                        PagedDecoderConfig{.weight_bits = p.weight_bits,
                                                           .kv_bits = p.kv_bits,
                                                           .block_size = p.pool_block_tokens(),
                                                           .num_blocks = p.pool_blocks()});
}

template <ServingPolicy kPolicy>
void run(const ServingProblem& p, const ServingTensors& tensors, const Launch& launch) {
  CpuServingModel model(*static_cast<PagedDecoder*>(launch.state), launch.threads);
  serve(p, kPolicy, model, ServingClock::host, tensors.run);
}

const RegisterVariant<Serving> static_batch{{
    .name = "cpu.static",
    .summary = "a small decoder on the CPU: a batch runs until its last request has ended",
    .unsupported = &unsupported<ServingPolicy::static_batch>,
    .prepare = &prepare,
    .run = &run<ServingPolicy::static_batch>,
}};

const RegisterVariant<Serving> iteration{{
    .name = "cpu.iteration",
    .summary = "a small decoder on the CPU: requests join and leave at every step, room reserved",
    .unsupported = &unsupported<ServingPolicy::iteration>,
    .prepare = &prepare,
    .run = &run<ServingPolicy::iteration>,
}};

const RegisterVariant<Serving> continuous{{
    .name = "cpu.continuous",
    .summary = "a small decoder on the CPU: blocks as tokens come, the latest request preempted",
    .unsupported = &unsupported<ServingPolicy::continuous>,
    .prepare = &prepare,
    .run = &run<ServingPolicy::continuous>,
}};

const RegisterVariant<Serving> chunked{{
    .name = "cpu.chunked",
    .summary = "a small decoder on the CPU: a budget of tokens a step, prompts in chunks",
    .unsupported = &unsupported<ServingPolicy::chunked>,
    .prepare = &prepare,
    .run = &run<ServingPolicy::chunked>,
}};

}  // namespace
}  // namespace inferometer
