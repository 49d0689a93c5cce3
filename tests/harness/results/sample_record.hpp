// A record as a good GPU row leaves it, for the tests of what is written about it.
#pragma once

#include "harness/results/record.hpp"

namespace inferometer::test {

inline Record sample_record() {
  Record record;
  record.id = "3f9a1c20b7de";
  record.operator_name = "attention_prefill";
  record.variant = "cuda.flash_sm80";
  record.backend = "cuda";
  record.problem = {{"batch", std::int64_t{1}},
                    {"causal", true},
                    {"dtype", std::string("f16")},
                    {"scale", 0.5},
                    {"contexts", std::vector<std::int64_t>{7, 0, 300}}};
  record.status = Status::ok;
  record.check = Check{.reference = "cpu.naive in f64",
                       .outputs_checked = 64,
                       .outputs_total = 4096,
                       .max_abs_error = 2e-4,
                       .rel_l2_error = 3e-4,
                       .tolerance_rel_l2 = 1e-3,
                       .worst_tensor = "o",
                       .worst_index = {0, 3, 17, 5},
                       .repeated_after_timing = true,
                       .passed = true,
                       .reason = {}};
  record.timing = Timing{.headline = "isolated",
                         .headline_ns = 80000,
                         .isolated = {.samples = 120,
                                      .median_ns = 80000,
                                      .p5_ns = 79000,
                                      .p95_ns = 82000,
                                      .min_ns = 78000,
                                      .mad_ns = 210,
                                      .ci_low_ns = 79200,
                                      .ci_high_ns = 80800,
                                      .ci_half_width_ratio = 0.01,
                                      .stop_reason = "converged",
                                      .cache = CacheMode::cold,
                                      .rest_seconds = 0.25,
                                      .sm_mhz_median = 1755,
                                      .flags = {"clock_moved"}},
                         .amortized = AmortizedTiming{.launches = 400, .mean_ns = 78000, .input_sets = 5},
                         .suspect = false,
                         .suspect_reason = {}};
  record.work = Work{.flops = 4e9, .bytes = 16777216, .arithmetic = Arithmetic::f16_matmul};
  record.rates = Rates{.flops_per_s = 5e13, .bytes_per_s = 2e11, .limit = "compute", .fraction_of_ceiling = 0.07};
  record.memory_bytes = {{"inputs", 300}, {"outputs", 100}, {"workspace", 50}, {"scratch", 7}, {"peak", 457}};
  record.metrics = {{"tokens_per_s", 12.5}};
  return record;
}

// The same, looked at by a profiler.
inline Record profiled_record() {
  Record record = sample_record();
  record.timing->profiler = ProfilerTiming{.tool = "CUPTI 13.0",
                                           .samples = 120,
                                           .median_ns = 77300,
                                           .p5_ns = 77000,
                                           .p95_ns = 78000,
                                           .between_events_ns = 80100,
                                           .sm_mhz_median = 1750,
                                           .kernels = {{.name = "flash_kernel", .count = 2, .mean_ns = 38000}}};
  return record;
}

}  // namespace inferometer::test
