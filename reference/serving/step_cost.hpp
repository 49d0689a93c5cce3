// What a step of a decoder costs on a machine, from its shape: the roofline (Williams, Waterman and Patterson, CACM
// 2009) of its two parts, one after the other.
//
//   matrix products   reading all weights once, and 2 flops for each weight and token: the longer of the two at the
//                     ceilings; kernels hide one behind the other in part, for which the root of the sum of their
//                     squares stands
//   attention         of each row with one token reading the keys and values in front of it and its own; of longer ones
//                     the longer of that and 4 head_dim flops for each query head and key that it sees
//   everything else   what norms and RoPE read and write, the starts and ends of kernels, launches that are no graph,
//                     and the host
//
// With the machine's ceilings that is a least time; with the rates that kernels reach on it, an estimate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace inferometer {

struct ServingProblem;

// Coefficients of a step's time, in ns; finite and not negative. A step of rows takes
//   step_ns + kernels_ns - (one_token_saved_ns where it has one token)
//   + (many_tokens_ns where it has more than few_tokens)
//   + (prompt_step_ns + prompt_kernels_ns + prompt_row_ns for each such row, where rows have more than one token)
//   + max(weights_ns, products)
//     (without weights_hidden the root of the sum of their squares, or products / sustained where that is longer)
//     where products = token_ns tokens (in whole tiles of them with whole_tiles) + sample_ns rows that sample
//   + stream_ns tokens
//   + sum over rows of key_ns keys, or max(key_ns keys, pair_ns pairs) with more than one token
//   + min(first_keys_ns, first_key_ns keys), keys of all rows of one token
// where a row of n tokens behind p others reads p + n keys and has n p + n (n + 1) / 2 pairs. What a rectangular batch
// would pad costs nothing: decoders compute the tokens of rows, one behind the other.
struct StepCost {
  double step_ns = 0;             // launches that are no graph, and what the host does between steps
  double prompt_step_ns = 0;      // beside that: such a step is no graph
  double kernels_ns = 0;          // starts and ends of kernels, in which they neither read nor multiply much
  double one_token_saved_ns = 0;  // of these and of reading weights, by kernels for one token
  std::int64_t few_tokens = 0;    // up to which norms are part of products
  double many_tokens_ns = 0;      // the kernels of norms
  double prompt_kernels_ns = 0;   // those of RoPE and of attention over prompts
  double prompt_row_ns = 0;       // attention that each prompt launches for itself
  double weights_ns = 0;          // reading the weights
  bool weights_hidden = true;
  double token_ns = 0;  // arithmetic of a token in the layers' matrices
  bool whole_tiles = false;
  double sample_ns = 0;      // of a row in the head
  double sustained = 1;      // share of the rate of arithmetic that a card without rests keeps up, for its power
  double stream_ns = 0;      // what norms and RoPE read and write of a token
  double key_ns = 0;         // reading a cached token
  double first_key_ns = 0;   // beside that, for single tokens: the first keys are read at a lower rate
  double first_keys_ns = 0;  // of all of these
  double pair_ns = 0;        // arithmetic of a query with a key, in prompts
  double host_ns = 0;        // of step_ns: the host's part, in which nothing is launched
};

// Tokens that a product multiplies: those of whole tiles. Kernels have tiles of 64 tokens and fewer up to 256 tokens
// and of 128 beyond; up to 16, reading the weights is all that counts.
constexpr std::int64_t tile_tokens(std::int64_t tokens) {
  const std::int64_t tile = tokens <= 16 ? 1 : tokens <= 256 ? 64 : 128;
  return (tokens + tile - 1) / tile * tile;
}

// Attention over prompts.
struct PromptRate {
  double flops_per_s = 0;
  double start_ns = 0;    // of its kernels, once a layer
  bool each_row = false;  // or once a layer and row
};

// Rates of a machine.
struct MachineRates {
  double weights_bytes_per_s = 0;    // of the layers
  bool weights_hidden = true;        // reading them behind arithmetic, or the other way round
  double head_bytes_per_s = 0;       // f16 at any weight_bits
  double one_token_bytes_per_s = 0;  // of the layers in one launch each, for one token; 0 where there is none such
  double kv_bytes_per_s = 0;
  double first_kv_ns_per_byte = 0;  // of a layer's attention of single tokens, beside that
  double first_kv_ns = 0;           // and up to so much
  double stream_bytes_per_s = 0;    // of norms and RoPE; 0 where these do not count
  double matmul_flops_per_s = 0;
  double sustained = 1;  // share of that which a card without rests keeps up, for its limit of power
  bool whole_tiles = false;
  PromptRate prompt_attention;
  double product_start_ns = 0;  // of a matrix product of the layers
  double head_start_ns = 0;
  double attention_start_ns = 0;  // of attention of single tokens
  double small_kernel_ns = 0;     // a norm, RoPE, a step's first and last kernels: all of one for few tokens
  std::int64_t few_tokens = 0;
  double launch_ns = 0;         // of a kernel in a step of single tokens, beyond what it takes in a graph
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

StepCost step_cost(const ServingProblem& problem, const MachineRates& rates);

}  // namespace inferometer
