#include "tests/support/test_copy.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <thread>

#include "harness/operator/operator.hpp"

namespace inferometer::test {

bool device_poisoned = false;

namespace {

const bool alive = [] {
  if (std::getenv(kDieAtStart) != nullptr) std::abort();
  return true;
}();

int expect_calls = 0;  // of this process

std::vector<TensorSpec> tensors(const CopyProblem& p) {
  return {{.name = "x", .role = Role::input, .dtype = Dtype::f32, .shape = {p.n}},
          {.name = "y", .role = Role::output, .dtype = Dtype::f32, .shape = {p.n}}};
}

CopyTensors bind(const CopyProblem& /*p*/, std::span<void* const> pointers) {
  return {.x = static_cast<const float*>(pointers[0]), .y = static_cast<float*>(pointers[1])};
}

Work work(const CopyProblem& p) {
  return {.flops = 0, .bytes = 2.0 * sizeof(float) * static_cast<double>(p.n), .arithmetic = Arithmetic::f32};
}

std::vector<ExpectedSpan> expect(const CopyProblem& p, const Inputs& inputs, std::uint64_t /*seed*/, int /*threads*/) {
  ++expect_calls;
  const std::vector<float> x = inputs.read("x", 0, p.n);
  return {{.tensor = "y", .begin = 0, .values = {x.begin(), x.end()}}};
}

Tolerance tolerance(const CopyProblem& /*p*/, std::string_view /*tensor*/) {
  return {.rel_l2 = 1e-9, .max_error_over_rms = 1e-9};  // a copy is exact
}

std::vector<Metric> metrics(const CopyProblem& p, const Inputs& /*inputs*/, std::span<const void* const> pointers,
                            int /*threads*/) {
  if (pointers[0] != nullptr || pointers[1] == nullptr) throw std::logic_error("metrics are given outputs only");
  const double zero = p.not_finite ? 0 : 1;
  return {{"process", static_cast<double>(getpid())},
          {"expect_calls", static_cast<double>(expect_calls)},
          {"idle_ratio", (1 - 1) / zero},
          {"copies_per_s", 1 / zero}};
}

const RegisterOperator<Copy> registered{{
    .summary = "copies, for tests of the harness",
    .fields = {{.name = "n", .member = &CopyProblem::n, .doc = "elements"},
               {.name = "sleep_ms", .member = &CopyProblem::sleep_ms, .doc = "of each launch", .min = 0},
               {.name = "dies_at", .member = &CopyProblem::dies_at, .doc = "launch, 0: prepare", .min = 0},
               {.name = "not_finite", .member = &CopyProblem::not_finite, .doc = "metrics are NaN and infinite"}},
    .tensors = &tensors,
    .bind = &bind,
    .work = &work,
    .expect = &expect,
    .reference = "the input",
    .tolerance = &tolerance,
    .metrics = &metrics,
}};

// Launches of one row: all its sets of tensors share the count, which starts anew with the check's set.
int launches = 0;
bool counting = false;

std::shared_ptr<void> count_launches(const CopyProblem& p, const CopyTensors& /*t*/, const Launch& /*launch*/,
                                     Allocator& /*allocator*/) {
  if (!counting) launches = 0;
  counting = true;
  if (p.dies_at == 0) return nullptr;
  return std::shared_ptr<void>(&launches, [](void*) { counting = false; });
}

void copy(const CopyProblem& p, const CopyTensors& t) { std::copy_n(t.x, p.n, t.y); }

void right(const CopyProblem& p, const CopyTensors& t, const Launch& /*launch*/) {
  std::this_thread::sleep_for(std::chrono::milliseconds(p.sleep_ms));
  copy(p, t);
}
const RegisterVariant<Copy> v_right{{.name = "cpu.right", .summary = "copies", .run = &right}};

void zeros(const CopyProblem& p, const CopyTensors& t, const Launch& /*launch*/) { std::fill_n(t.y, p.n, 0.0F); }
const RegisterVariant<Copy> v_zeros{{.name = "cpu.zeros", .summary = "writes zeros", .run = &zeros}};

void nothing(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) {}
const RegisterVariant<Copy> v_nothing{{.name = "cpu.nothing", .summary = "launches nothing", .run = &nothing}};

std::shared_ptr<void> count_from_prepare(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/,
                                         Allocator& /*allocator*/) {
  return std::make_shared<int>(0);
}

constexpr int kRightCalls = 10;
void wrong_later(const CopyProblem& p, const CopyTensors& t, const Launch& launch) {
  copy(p, t);
  if (++*static_cast<int*>(launch.state) > kRightCalls) t.y[p.n - 1] += 1.0F;
}
const RegisterVariant<Copy> v_wrong_later{{.name = "cpu.wrong_later",
                                           .summary = "right for its first 10 calls",
                                           .prepare = &count_from_prepare,
                                           .run = &wrong_later}};

void stale(const CopyProblem& p, const CopyTensors& t, const Launch& launch) {
  if (++*static_cast<int*>(launch.state) == 1) copy(p, t);
}
const RegisterVariant<Copy> v_stale{{.name = "cpu.stale",
                                     .summary = "leaves the output of its first call",
                                     .prepare = &count_from_prepare,
                                     .run = &stale}};

void throws(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) {
  throw std::runtime_error("kernels/test_copy/throws.cpp:1: the tile is too wide");
}
const RegisterVariant<Copy> v_throws{{.name = "cpu.throws", .summary = "throws", .run = &throws}};

void throws_int(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) { throw 7; }
const RegisterVariant<Copy> v_throws_int{{.name = "cpu.throws_int", .summary = "throws 7", .run = &throws_int}};

void aborts(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) {
  std::fputs("assertion `tile < tiles' failed\n", stderr);
  std::abort();
}
const RegisterVariant<Copy> v_aborts{{.name = "cpu.aborts", .summary = "aborts", .run = &aborts}};

void segfaults(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) { std::raise(SIGSEGV); }
const RegisterVariant<Copy> v_segfaults{{.name = "cpu.segfaults", .summary = "SIGSEGV", .run = &segfaults}};

void leaves(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) { std::_Exit(0); }
const RegisterVariant<Copy> v_leaves{{.name = "cpu.leaves", .summary = "ends its process", .run = &leaves}};

void endless(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}
const RegisterVariant<Copy> v_endless{{.name = "cpu.endless", .summary = "never returns", .run = &endless}};

void gated(const CopyProblem& p, const CopyTensors& t, const Launch& /*launch*/) {
  const char* gate = std::getenv(kGate);
  while (gate != nullptr && std::filesystem::exists(gate)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  copy(p, t);
}
const RegisterVariant<Copy> v_gated{{.name = "cpu.gated", .summary = "waits at a gate", .run = &gated}};

std::size_t too_much(const CopyProblem& /*p*/) { return std::size_t{1} << 50; }
const RegisterVariant<Copy> v_greedy{
    {.name = "cpu.greedy", .summary = "wants 1 PiB", .workspace_bytes = &too_much, .run = &right}};

std::optional<std::string> choosy_unsupported(const CopyProblem& p) {
  return "n must be a multiple of 1024 and negative, got " + std::to_string(p.n);
}
const RegisterVariant<Copy> v_choosy{
    {.name = "cpu.choosy", .summary = "supports nothing", .unsupported = &choosy_unsupported, .run = &right}};

void chatty(const CopyProblem& p, const CopyTensors& t, const Launch& /*launch*/) {
  std::printf("{\"type\": \"result\"}\n");
  std::fflush(stdout);
  copy(p, t);
}
const RegisterVariant<Copy> v_chatty{{.name = "cpu.chatty", .summary = "prints", .run = &chatty}};

std::shared_ptr<void> dies_in_prepare(const CopyProblem& p, const CopyTensors& t, const Launch& launch,
                                      Allocator& allocator) {
  if (p.dies_at == 0) std::raise(SIGKILL);
  return count_launches(p, t, launch, allocator);
}
void dies(const CopyProblem& p, const CopyTensors& t, const Launch& /*launch*/) {
  if (++launches == p.dies_at) std::raise(SIGKILL);
  copy(p, t);
}
const RegisterVariant<Copy> v_dies{
    {.name = "cpu.dies", .summary = "SIGKILL", .prepare = &dies_in_prepare, .run = &dies}};

// These run on host memory: tests give them a device that only says it is a GPU.
const RegisterVariant<Copy> v_gpu{{.name = "cuda.right", .summary = "copies", .min_sm = 80, .run = &right}};
const RegisterVariant<Copy> v_gpu_new{{.name = "cuda.sm90", .summary = "copies", .min_sm = 90, .run = &right}};

void poisons(const CopyProblem& /*p*/, const CopyTensors& /*t*/, const Launch& /*launch*/) { device_poisoned = true; }
const RegisterVariant<Copy> v_poisons{{.name = "cuda.poisons", .summary = "illegal address", .run = &poisons}};

}  // namespace
}  // namespace inferometer::test
