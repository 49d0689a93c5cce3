// What a step of a decoder costs on a machine, from its shape: the roofline (Williams, Waterman and Patterson, CACM
// 2009) of its two parts, one after the other.
//
//   matrix products   the longer of reading all weights once, and 2 flops for each weight and token; kernels that
//                     convert weights of 8 and 4 bits hide neither behind the other: the sum, as an estimate
//   attention         of each row the longer of reading the keys and values in front of it and its own, and 4 head_dim
//                     flops for each query head and key that it sees
//   everything else   launches and the host; norms, RoPE and SwiGLU are in the reach of these
//
// With the machine's ceilings that is a least time; with the rates that kernels reach on it, an estimate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace inferometer {

struct ServingProblem;

// Coefficients of a step's time, in ns; finite and not negative. A step of rows takes
//   step_ns + (prompt_step_ns where a row has more than one token)
//   + max(weights_ns, token_ns tokens + sample_ns rows that sample)   (their sum without weights_hidden)
//   + sum over rows of max(key_ns keys, pair_ns pairs)
// where a row of n tokens behind p others reads p + n keys and has n p + n (n + 1) / 2 pairs.
struct StepCost {
  double step_ns = 0;         // launches, and what the host does between steps
  double prompt_step_ns = 0;  // beside that: such a step is no graph
  double weights_ns = 0;      // reading the weights
  bool weights_hidden = true;
  double token_ns = 0;   // arithmetic of a token in the layers' matrices, padding included
  double sample_ns = 0;  // of a row in the head
  double key_ns = 0;     // reading a cached token
  double pair_ns = 0;    // arithmetic of a query with a key
  double host_ns = 0;    // of step_ns: the host's part, in which nothing is launched
};

// Rates of a machine.
struct MachineRates {
  double weights_bytes_per_s = 0;  // of the layers
  bool weights_hidden = true;      // reading them behind arithmetic, or the other way round
  double head_bytes_per_s = 0;     // f16 at any weight_bits
  double kv_bytes_per_s = 0;
  double matmul_flops_per_s = 0;
  double attention_flops_per_s = 0;
  double launch_ns = 0;         // of a kernel in a step of single tokens, beyond its work
  double prompt_launch_ns = 0;  // in another step
  double host_ns = 0;           // of a step: scheduling, inputs, outputs
};

std::vector<std::string> machine_names();

// Its ceilings, and the rates of this project's kernels there for the problem's bits, attention and graphs. Throw
// std::out_of_range for an unknown machine.
MachineRates ceiling_rates(const ServingProblem& problem);
MachineRates achieved_rates(const ServingProblem& problem);

// Of the problem's model.
std::int64_t layer_weight_bytes(const ServingProblem& problem);
std::int64_t head_weight_bytes(const ServingProblem& problem);
double layer_flops(const ServingProblem& problem);  // of a token, in the layers' matrices
double head_flops(const ServingProblem& problem);   // of a row that samples
double pair_flops(const ServingProblem& problem);   // attention, of a query with a key
std::int64_t kernels_of_step(const ServingProblem& problem);

StepCost step_cost(const ServingProblem& problem, const MachineRates& rates);

}  // namespace inferometer
