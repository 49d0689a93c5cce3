#include "reference/serving/step_cost.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "reference/serving/problem.hpp"

namespace inferometer {
namespace {

constexpr double kNsPerS = 1e9;
constexpr std::int64_t kScaleBytes = 2;   // f16
constexpr double kProducts = 4;           // of a layer: QKV; O; gate and up with SwiGLU; down
constexpr double kNorms = 2;              // of a layer, with more than few_tokens
constexpr double kKernelsBeside = 3;      // of a step: embedding, the last norm, the greatest logit
constexpr std::int64_t kNormBytes = 12;   // of a norm's feature: f32 sum read and written, f16 added and left
constexpr std::int64_t kTurnedBytes = 4;  // of an element of q, k and v: read and written as f16

// By the bits of what is read.
template <class T>
struct ByBits {
  T bits16 = {};
  T bits8 = {};
  T bits4 = {};

  T at(std::int64_t bits) const { return bits == 16 ? bits16 : bits == 8 ? bits8 : bits4; }
};

struct Machine {
  std::string_view name;
  // Ceilings.
  double read_bytes_per_s = 0;
  double f16_flops_per_s = 0;
  // What kernels reach.
  ByBits<double> weights_bytes_per_s;
  ByBits<double> matmul_flops_per_s;
  ByBits<double> product_start_ns;
  double sustained = 1;
  ByBits<double> one_token_bytes_per_s;
  ByBits<std::int64_t> few_tokens;
  ByBits<double> kv_bytes_per_s;
  ByBits<double> first_kv_ns_per_byte;
  ByBits<double> first_kv_ns;
  ByBits<double> attention_start_ns;
  PromptRate flash;
  PromptRate materialized;
  PromptRate over_codes;
  double stream_bytes_per_s = 0;
  double small_kernel_ns = 0;
  double launch_ns = 0;
  double host_ns = 0;
};

// Fits minimise the mean square of the logarithm of modelled over measured times, "in a row" (amortized).
constexpr std::array kMachines{Machine{
    .name = "h200",
    .read_bytes_per_s = 4.65e12,  // measured: 256 MiB read behind a cleared L2
    .f16_flops_per_s = 989e12,    // dense, on paper
    // start + sqrt((bytes / rate)^2 + (flops / rate)^2), the tokens in whole tiles, fitted to
    // results/h200/matmul_bit_width.json and matmul_batch.json as of commit 725014e: 4096 x 4096, 14336 x 4096,
    // 4096 x 14336 and 8192 x 8192 at 1 to 4096 tokens, cuda.f16_sm90, w8a16, w4a16. Root mean square of what is left:
    // 4, 6 and 7 % of the first file, 4, 7 and 9 % of the other.
    .weights_bytes_per_s = {.bits16 = 4.36e12, .bits8 = 4.54e12, .bits4 = 4.12e12},
    .matmul_flops_per_s = {.bits16 = 819e12, .bits8 = 747e12, .bits4 = 769e12},
    .product_start_ns = {.bits16 = 4380, .bits8 = 3760, .bits4 = 3850},
    // Eight products of 2048 tokens without rests (matmul_f16.json) take 1.12 to 1.19 times as long as with a rest
    // before each row (matmul_f16_prefill.json): the card is at its limit of power. Those of 128 tokens, bound by
    // reading, do not. A server does not rest either. Of 8 and 4 bits it is assumed.
    .sustained = 0.86,
    // The chain of products alone, 32 launches for Llama-3-8B: 3454 and 1316 us, less 19 us of what stood between them
    // (results/notes/generation.md).
    .one_token_bytes_per_s = {.bits16 = 4.06e12, .bits4 = 2.86e12},
    .few_tokens = {.bits16 = 32, .bits8 = 8, .bits4 = 16},  // the decoder's (results/notes/generation.md)
    // start + bytes / rate + what the first 1.5 to 5 MB take longer, fitted to
    // results/h200/attention_decode{,_kv8,_kv4}.json: cuda.paged, blocks of 16, 32 heads over 8 of 128, 1 to 128
    // sequences of 128 (KV8, KV4: 1024) to 32768. What is left: 7, 3 and 5 %; 7, 5 and 8 % without the third term.
    .kv_bytes_per_s = {.bits16 = 4.50e12, .bits8 = 4.46e12, .bits4 = 3.88e12},
    .first_kv_ns_per_byte = {.bits16 = 0.71e-3, .bits8 = 0.46e-3, .bits4 = 0.44e-3},
    .first_kv_ns = {.bits16 = 1040, .bits8 = 2200, .bits4 = 2150},
    .attention_start_ns = {.bits16 = 3220, .bits8 = 4130, .bits4 = 4580},
    // The line through causal prompts of 512 and 1024 tokens, head_dim 128, 32 heads over 8:
    // results/h200/attention_prefill.json, cuda.flash_sm90 and cuda.materialized. 2048 tokens are 3 % above it and 5 %
    // below.
    .flash = {.flops_per_s = 628e12, .start_ns = 9450},
    .materialized = {.flops_per_s = 89e12, .start_ns = 24'000, .each_row = true},
    // A prompt of 1024 tokens takes 5.0 ms longer over 8 bits, in the kernel that is for single tokens
    // (results/notes/generation.md): 156 us a layer beside the 23 to 44 us of a flash kernel.
    .over_codes = {.flops_per_s = 45e12, .start_ns = 5650, .each_row = true},
    // Fused with an addition, 8192 and 1 tokens of 4096 (results/h200/rms_norm.json).
    .stream_bytes_per_s = 3.75e12,
    .small_kernel_ns = 2190,
    // An empty kernel takes 2.7 us between two events (noise.empty_kernel_ns of results files), as a node of a graph
    // 0.5. With this a step of cuda.recompute, which is no graph, is 12 % too slow (results/notes/serving.md).
    .launch_ns = 2200,
    // The one constant that serving itself gives: host_gap_ratio of serving_policies.json is 56 to 78 us a step. (A
    // step of generation that the host waited for took 18 to 33 us more than queued ones in the run of commit 99525a0.)
    .host_ns = 65'000,
}};

const Machine& machine_of(const ServingProblem& p) {
  const auto* const found = std::find_if(kMachines.begin(), kMachines.end(),
                                         [&](const Machine& machine) { return machine.name == p.machine; });
  if (found == kMachines.end()) throw std::out_of_range("no machine '" + p.machine + "'");
  return *found;
}

std::int64_t layer_weights(const DecoderShape& shape) {
  const std::int64_t attention = shape.hidden * (2 * shape.q_size() + 2 * shape.kv_size());
  return shape.layers * (attention + 3 * shape.hidden * shape.intermediate);
}

std::int64_t head_weights(const DecoderShape& shape) { return shape.vocabulary * shape.hidden; }

}  // namespace

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  names.reserve(kMachines.size());
  for (const Machine& machine : kMachines) names.emplace_back(machine.name);
  return names;
}

MachineRates ceiling_rates(const ServingProblem& p) {
  const Machine& machine = machine_of(p);
  return {.weights_bytes_per_s = machine.read_bytes_per_s,
          .head_bytes_per_s = machine.read_bytes_per_s,
          .kv_bytes_per_s = machine.read_bytes_per_s,
          .matmul_flops_per_s = machine.f16_flops_per_s,
          .prompt_attention = {.flops_per_s = machine.f16_flops_per_s}};
}

MachineRates achieved_rates(const ServingProblem& p) {
  const Machine& machine = machine_of(p);
  return {.weights_bytes_per_s = machine.weights_bytes_per_s.at(p.weight_bits),
          .weights_hidden = false,
          .head_bytes_per_s = machine.weights_bytes_per_s.bits16,
          .one_token_bytes_per_s = machine.one_token_bytes_per_s.at(p.weight_bits),
          .kv_bytes_per_s = machine.kv_bytes_per_s.at(p.kv_bits),
          .first_kv_ns_per_byte = machine.first_kv_ns_per_byte.at(p.kv_bits),
          .first_kv_ns = machine.first_kv_ns.at(p.kv_bits),
          .stream_bytes_per_s = machine.stream_bytes_per_s,
          .matmul_flops_per_s = machine.matmul_flops_per_s.at(p.weight_bits),
          .sustained = machine.sustained,
          .whole_tiles = true,
          .prompt_attention = p.kv_bits != 16          ? machine.over_codes
                              : p.attention == "flash" ? machine.flash
                                                       : machine.materialized,
          .product_start_ns = machine.product_start_ns.at(p.weight_bits),
          .head_start_ns = machine.product_start_ns.bits16,
          .attention_start_ns = machine.attention_start_ns.at(p.kv_bits),
          .small_kernel_ns = machine.small_kernel_ns,
          .few_tokens = machine.few_tokens.at(p.weight_bits),
          .launch_ns = p.graphs ? 0 : machine.launch_ns,
          .prompt_launch_ns = machine.launch_ns,
          .host_ns = machine.host_ns};
}

std::int64_t layer_weight_bytes(const ServingProblem& p) {
  const std::int64_t weights = layer_weights(decoder_shape(p.model));
  return weights * p.weight_bits / 8 + (p.weight_bits == 16 ? 0 : weights / kWeightGroup * kScaleBytes);
}

std::int64_t head_weight_bytes(const ServingProblem& p) { return 2 * head_weights(decoder_shape(p.model)); }

double layer_flops(const ServingProblem& p) { return 2 * static_cast<double>(layer_weights(decoder_shape(p.model))); }

double head_flops(const ServingProblem& p) { return 2 * static_cast<double>(head_weights(decoder_shape(p.model))); }

double pair_flops(const ServingProblem& p) {
  const DecoderShape& shape = decoder_shape(p.model);
  return 4 * static_cast<double>(shape.layers * shape.q_size());
}

StepCost step_cost(const ServingProblem& p, const MachineRates& rates) {
  const DecoderShape& shape = decoder_shape(p.model);
  const auto ns = [](double amount, double per_s) { return per_s > 0 ? kNsPerS * amount / per_s : 0; };
  const auto layers = static_cast<double>(shape.layers);
  const auto layer_bytes = static_cast<double>(layer_weight_bytes(p));
  // Single tokens over 16 bits are turned and stored by the attention; RoPE and the append are two kernels otherwise.
  const double turning = p.kv_bits == 16 ? 0 : 2;
  const double prompt_turning = p.kv_bits == 16 ? 1 : 0;  // beside that
  const double kernels = layers * (kProducts + 1 + turning) + kKernelsBeside + 1;
  const double prompt_kernels = layers * (kNorms + prompt_turning + 1);
  const double products_ns = layers * kProducts * rates.product_start_ns;
  const double one_token_ns = ns(layer_bytes, rates.one_token_bytes_per_s);
  const double layers_ns = ns(layer_bytes, rates.weights_bytes_per_s);
  const auto turned = static_cast<double>(shape.q_size() + 2 * shape.kv_size());
  const PromptRate& prompt = rates.prompt_attention;
  return {
      .step_ns = rates.host_ns + rates.launch_ns * kernels,
      .prompt_step_ns = rates.prompt_launch_ns * (kernels + prompt_kernels) - rates.launch_ns * kernels,
      .kernels_ns = products_ns + rates.head_start_ns + layers * rates.attention_start_ns +
                    (layers * turning + kKernelsBeside) * rates.small_kernel_ns,
      .one_token_saved_ns = one_token_ns > 0 ? std::max(0.0, products_ns + layers_ns - one_token_ns) : 0,
      .few_tokens = rates.few_tokens,
      .many_tokens_ns = layers * kNorms * rates.small_kernel_ns,
      .prompt_kernels_ns = layers * (prompt_turning * rates.small_kernel_ns + (prompt.each_row ? 0 : prompt.start_ns)),
      .prompt_row_ns = prompt.each_row ? layers * prompt.start_ns : 0,
      .weights_ns = layers_ns + ns(static_cast<double>(head_weight_bytes(p)), rates.head_bytes_per_s),
      .weights_hidden = rates.weights_hidden,
      .token_ns = ns(layer_flops(p), rates.matmul_flops_per_s),
      .whole_tiles = rates.whole_tiles,
      .sample_ns = ns(head_flops(p), rates.matmul_flops_per_s),
      .sustained = rates.sustained,
      .stream_ns = layers * ns(kNorms * kNormBytes * static_cast<double>(shape.hidden) + kTurnedBytes * turned,
                               rates.stream_bytes_per_s),
      .key_ns = ns(static_cast<double>(p.token_bytes()), rates.kv_bytes_per_s),
      .first_key_ns = rates.first_kv_ns_per_byte * static_cast<double>(p.token_bytes()),
      .first_keys_ns = layers * rates.first_kv_ns,
      .pair_ns = ns(pair_flops(p), prompt.flops_per_s),
      .host_ns = rates.host_ns};
}

}  // namespace inferometer
