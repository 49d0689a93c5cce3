// serving: requests of a trace through a serving engine: who runs when, in which memory, and what every request gets of
// it. Every output token and its time is kept, so that figures and checks are made from those alone.
//
// A variant is a model behind the engine with a policy of scheduling, and calls itself "<backend>.<policy>":
// cpu.continuous runs a decoder, cpu.simulated_continuous a model of what a step costs on a GPU. Policies: static,
// iteration, continuous and chunked (kernels/serving/config.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/decoder/problem.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "reference/serving/ledger.hpp"
#include "reference/serving/metrics.hpp"
#include "reference/serving/paged_decoder.hpp"
#include "reference/serving/record.hpp"
#include "reference/serving/requests.hpp"
#include "reference/serving/run_record.hpp"
#include "reference/serving/step_cost.hpp"

namespace inferometer {

struct ServingProblem {
  std::string model = "llama3_8b";             // decoder_names()
  std::string trace = "synthetic_azure_conv";  // a file or a synthetic distribution (kv_memory/request.hpp)
  std::int64_t requests = 256;                 // the first of the trace
  std::int64_t max_prompt = 1024;              // tokens; what is longer is cut
  std::int64_t max_output = 512;
  std::int64_t slots = 32;      // most requests that run at once
  std::int64_t max_length = 0;  // tokens that a request may store, and of a contiguous slot; 0: the model's limit
  std::int64_t pool_bytes = std::int64_t{16} << 30;
  std::int64_t block_size = 16;  // tokens; 0: contiguous slots of max_length
  bool prefix_reuse = false;
  std::int64_t token_budget = 512;  // of a step; chunked
  std::int64_t weight_bits = 16;
  std::int64_t kv_bits = 16;
  std::string attention = "flash";        // or materialized: of prompts
  bool graphs = true;                     // decode steps as CUDA graphs
  std::string arrivals = "all_at_start";  // or trace: the trace's own times; or poisson
  double rate = 1;                        // trace: times as fast; poisson: requests a second
  double ttft_limit_ms = 0;               // of a request that counts as good; 0: none
  double tpot_limit_ms = 0;
  std::string machine = "h200";  // whose costs are simulated, and whose ceilings figures are set against
  std::int64_t trace_seed = 1;   // of a synthetic trace, and of poisson arrivals

  std::int64_t token_bytes() const;        // keys and values of one token
  std::int64_t pool_tokens() const;        // in whole blocks, or whole slots
  std::int64_t pool_block_tokens() const;  // of a block of the pool: block_size, or max_length
  std::int64_t pool_blocks() const;
  bool is_small() const;  // a model that a CPU can follow token by token
  // Whether the engine can ever run a request; one without outputs needs a prompt all the same.
  bool fits(std::int64_t prompt, std::int64_t output) const;
};

inline constexpr std::uint64_t kServingWeightSeed = 35;  // of the random weights of every decoder

// One tensor, run_elements(problem) long, on the device of its variant. run_record.hpp has its layout.
struct ServingTensors {
  std::int32_t* run = nullptr;
};

struct Serving {
  static constexpr std::string_view kName = "serving";
  using Problem = ServingProblem;
  using Tensors = ServingTensors;
};

}  // namespace inferometer
