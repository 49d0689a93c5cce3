#include "reference/serving/step_cost.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>

#include "reference/serving/problem.hpp"

namespace inferometer {
namespace {

constexpr double kNsPerS = 1e9;
constexpr std::int64_t kScaleBytes = 2;       // f16
constexpr std::int64_t kKernelsOfLayer = 10;  // norm, QKV, RoPE with append, attention, O, norm, gate and up, SwiGLU,
                                              // down; and the merge of split attention
constexpr std::int64_t kKernelsBeside = 4;    // embedding, norm, head, sampling

// By the bits of what is read.
struct ByBits {
  double bits16 = 0;
  double bits8 = 0;
  double bits4 = 0;

  double at(std::int64_t bits) const { return bits == 16 ? bits16 : bits == 8 ? bits8 : bits4; }
};

struct Machine {
  std::string_view name;
  // Ceilings.
  double read_bytes_per_s = 0;
  double f16_flops_per_s = 0;
  // What kernels reach.
  ByBits weights_bytes_per_s;
  ByBits kv_bytes_per_s;
  ByBits matmul_flops_per_s;
  double flash_flops_per_s = 0;
  double materialized_flops_per_s = 0;
  double launch_ns = 0;
  double graph_launch_ns = 0;
  double host_ns = 0;
};

constexpr std::array kMachines{Machine{
    .name = "h200",
    .read_bytes_per_s = 4.65e12,  // measured: 256 MiB read behind a cleared L2
    .f16_flops_per_s = 989e12,    // dense, on paper
    // f16: 4096 x 14336 at 1 token takes 30.2 us (results/h200/matmul_f16.json, cublas.f16); 8 and 4 bits: 8192 x 8192
    // at 1 token 21.8 and 15.8 us, less the 2.9 us of an empty kernel (notes/weight_only_matmul.md).
    .weights_bytes_per_s = {.bits16 = 3.89e12, .bits8 = 3.76e12, .bits4 = 2.68e12},
    // 32 sequences of 1024, 32 heads over 8, blocks of 16: results/h200/attention_decode{,_kv8,_kv4}.json.
    .kv_bytes_per_s = {.bits16 = 3.97e12, .bits8 = 3.26e12, .bits4 = 2.40e12},
    // f16: 8192^3 under the power limit; 8 and 4 bits: 4096 tokens x 8192 x 8192 in 835 us (the same note).
    .matmul_flops_per_s = {.bits16 = 690e12, .bits8 = 658e12, .bits4 = 658e12},
    // Causal, 1024 tokens, head_dim 128: results/h200/attention_prefill.json, cuda.flash_sm80 and cuda.materialized.
    .flash_flops_per_s = 196e12,
    .materialized_flops_per_s = 64e12,
    .launch_ns = 2690,       // an empty kernel between two events
    .graph_launch_ns = 520,  // a node of a graph that does nothing
    .host_ns = 20000,        // a step that the host waits for takes 17 to 20 us more (notes/generation.md)
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
          .attention_flops_per_s = machine.f16_flops_per_s};
}

MachineRates achieved_rates(const ServingProblem& p) {
  const Machine& machine = machine_of(p);
  return {
      .weights_bytes_per_s = machine.weights_bytes_per_s.at(p.weight_bits),
      .weights_hidden = p.weight_bits == 16,
      .head_bytes_per_s = machine.weights_bytes_per_s.bits16,
      .kv_bytes_per_s = machine.kv_bytes_per_s.at(p.kv_bits),
      .matmul_flops_per_s = machine.matmul_flops_per_s.at(p.weight_bits),
      .attention_flops_per_s = p.attention == "flash" ? machine.flash_flops_per_s : machine.materialized_flops_per_s,
      .launch_ns = p.graphs ? machine.graph_launch_ns : machine.launch_ns,
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

std::int64_t kernels_of_step(const ServingProblem& p) {
  return decoder_shape(p.model).layers * kKernelsOfLayer + kKernelsBeside;
}

StepCost step_cost(const ServingProblem& p, const MachineRates& rates) {
  const auto ns = [](double amount, double per_s) { return kNsPerS * amount / per_s; };
  const auto kernels = static_cast<double>(kernels_of_step(p));
  return {.step_ns = rates.host_ns + rates.launch_ns * kernels,
          .prompt_step_ns = (rates.prompt_launch_ns - rates.launch_ns) * kernels,
          .weights_ns = ns(static_cast<double>(layer_weight_bytes(p)), rates.weights_bytes_per_s) +
                        ns(static_cast<double>(head_weight_bytes(p)), rates.head_bytes_per_s),
          .weights_hidden = rates.weights_hidden,
          .token_ns = ns(layer_flops(p), rates.matmul_flops_per_s),
          .sample_ns = ns(head_flops(p), rates.matmul_flops_per_s),
          .key_ns = ns(static_cast<double>(p.token_bytes()), rates.kv_bytes_per_s),
          .pair_ns = ns(pair_flops(p), rates.attention_flops_per_s),
          .host_ns = rates.host_ns};
}

}  // namespace inferometer
