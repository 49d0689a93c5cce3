// serving / cuda.<policy>: a decoder on the GPU behind the engine, with random weights of the problem's shape. Times
// are the host's, from the end of one step to the end of the next; the GPU counts as busy between two events around the
// step's kernels, so that gaps between these count as busy, and launch_gap_ratio is 0.
//
// A run waits for the GPU in every step and is no work that could be queued: harness/measure times it as it is, without
// a graph of launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/gpu_handles.hpp"
#include "harness/operator/variant.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/serving/serve.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostStepTokens = 65'535;  // of a step: the decoder's own limit

class CudaServingModel : public ServingModel {
 public:
  CudaServingModel(CudaDecoder& decoder, Stream stream) : decoder_(decoder), stream_(stream), last_(Clock::now()) {}

  StepTime step(const StepBatch& batch, std::span<TokenId> next) override {
    decoder_.queue_batch(batch);
    INFEROMETER_CUDA_CHECK(cudaEventRecord(start_.get(), stream_));
    decoder_.queue_step();
    INFEROMETER_CUDA_CHECK(cudaEventRecord(stop_.get(), stream_));
    decoder_.finish_step(next);  // waits for the stream
    const auto now = Clock::now();
    const std::int64_t ns = std::chrono::nanoseconds(now - last_).count();
    const std::int64_t busy_ns = std::min<std::int64_t>(ns, std::llround(elapsed_ns(start_, stop_)));
    last_ = now;
    return {.ns = ns, .busy_ns = busy_ns, .host_ns = ns - busy_ns};
  }

 private:
  using Clock = std::chrono::steady_clock;

  CudaDecoder& decoder_;
  Stream stream_;
  CudaEvent start_ = make_event();
  CudaEvent stop_ = make_event();
  Clock::time_point last_;
};

struct State {
  State(const ServingProblem& problem, const DecoderConfig& config, const Launch& launch, Allocator& allocator)
      : decoder(SeededWeights(decoder_shape(problem.model), kServingWeightSeed), config, launch.stream, allocator),
        elements(static_cast<std::size_t>(run_elements(problem))) {}

  CudaDecoder decoder;
  std::vector<std::int32_t> elements;
};

// Of a contiguous cache a block holds a sequence; prefill attention takes 128 keys of it at once.
std::int64_t decoder_block(const ServingProblem& p) {
  return p.block_size == 0 ? (p.max_length + 127) / 128 * 128 : p.block_size;
}

// What a step can have at most: nobody computes more than it may store, and all together no more than the pool holds.
std::int64_t most_tokens(const ServingProblem& p, ServingPolicy policy) {
  if (policy == ServingPolicy::chunked) return p.token_budget;
  const std::int64_t longest = std::min(p.max_length, p.max_prompt + p.max_output);
  return std::min(p.slots * longest, p.pool_tokens());
}

template <ServingPolicy kPolicy>
std::optional<std::string> unsupported(const ServingProblem& p) {
  if (auto sentence = attention_impossible(p)) return sentence;
  if (p.machine != "h200") return "machine must be h200, whose ceilings are known";
  return kPolicy == ServingPolicy::chunked ? budget_too_small(p) : std::nullopt;
}

template <ServingPolicy kPolicy>
std::shared_ptr<void> prepare(const ServingProblem& p, const ServingTensors&, const Launch& launch,
                              Allocator& allocator) {
  const DecoderConfig config{
      .weight_bits = p.weight_bits,
      .kv_bits = p.kv_bits,
      .block_size = decoder_block(p),
      .num_blocks = p.pool_blocks(),
      .max_rows = p.slots,
      .max_tokens = std::min(most_tokens(p, kPolicy), kMostStepTokens),
      .max_length = p.max_length,
      .graphs = p.graphs,
      .prompt_attention = p.attention == "flash" ? PromptAttention::flash : PromptAttention::materialized};
  return std::make_shared<State>(p, config, launch, allocator);
}

template <ServingPolicy kPolicy>
void run(const ServingProblem& p, const ServingTensors& tensors, const Launch& launch) {
  State& state = *static_cast<State*>(launch.state);
  CudaServingModel model(state.decoder, launch.stream);
  serve(p, kPolicy, model, ServingClock::device, state.elements.data());
  INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(tensors.run, state.elements.data(),
                                         state.elements.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice,
                                         launch.stream));
}

const RegisterVariant<Serving> static_batch{{
    .name = "cuda.static",
    .summary = "a decoder on the GPU: a batch runs until its last request has ended",
    .min_sm = 80,
    .unsupported = &unsupported<ServingPolicy::static_batch>,
    .prepare = &prepare<ServingPolicy::static_batch>,
    .run = &run<ServingPolicy::static_batch>,
}};

const RegisterVariant<Serving> iteration{{
    .name = "cuda.iteration",
    .summary = "a decoder on the GPU: requests join and leave at every step, room reserved",
    .min_sm = 80,
    .unsupported = &unsupported<ServingPolicy::iteration>,
    .prepare = &prepare<ServingPolicy::iteration>,
    .run = &run<ServingPolicy::iteration>,
}};

const RegisterVariant<Serving> continuous{{
    .name = "cuda.continuous",
    .summary = "a decoder on the GPU: blocks as tokens come, the latest request preempted",
    .min_sm = 80,
    .unsupported = &unsupported<ServingPolicy::continuous>,
    .prepare = &prepare<ServingPolicy::continuous>,
    .run = &run<ServingPolicy::continuous>,
}};

const RegisterVariant<Serving> chunked{{
    .name = "cuda.chunked",
    .summary = "a decoder on the GPU: a budget of tokens a step, prompts in chunks",
    .min_sm = 80,
    .unsupported = &unsupported<ServingPolicy::chunked>,
    .prepare = &prepare<ServingPolicy::chunked>,
    .run = &run<ServingPolicy::chunked>,
}};

}  // namespace
}  // namespace inferometer
