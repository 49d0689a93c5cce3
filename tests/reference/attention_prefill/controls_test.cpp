// Negative controls: what kernels get wrong in windows, soft caps, ragged batches and paged caches must fail the judge.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/prefill_problems.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

using Problem = AttentionPrefillProblem;

// The judge's verdict on problem `p` with its own inputs, of the outputs that cpu.naive gets for `done` and `edit`.
Check judged(const Problem& p, const Problem& done, const EditTensors& edit = {}) {
  const Operator& op = *find_operator("attention_prefill");
  const auto problem = op.parse(prefill_fields(p));
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  const VariantRun run = run_variant("attention_prefill", "cpu.naive", prefill_fields(done), 1, edit);
  std::vector<OutputView> views;
  for (const TensorSpec& spec : specs)
    if (spec.role == Role::output) views.push_back({.spec = &spec, .data = run.raw.at(spec.name).data()});
  return judge(
      views, op.expect(problem.get(), Inputs(specs, 1), 1, 2),
      [&](std::string_view name) { return op.tolerance(problem.get(), name); }, op.reference, 2);
}

// Each control on small problems, whose rows are all judged, and on one of which only a sample is.
std::vector<Problem> problems(const std::function<void(Problem&)>& set) {
  std::vector<Problem> all;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16})
    for (const std::int64_t length : {100, 600}) {
      Problem p{
          .batch = 2, .q_heads = 4, .kv_heads = 2, .q_len = length, .kv_len = length, .causal = true, .dtype = dtype};
      set(p);
      REQUIRE(judged(p, p).passed);
      all.push_back(p);
    }
  return all;
}

// The integers of a tensor, for a kernel that reads others.
std::vector<std::int32_t>& integers(std::vector<TensorSpec>& specs, const char* name) {
  return std::get<std::vector<std::int32_t>>(tensor_named(specs, name).source);
}

}  // namespace

TEST_CASE("judge: for prefill a window off by one, or forgotten, fails", "[judge][controls]") {
  for (const Problem& p : problems([](Problem& problem) { problem.window_left = 50; }))
    for (const std::int64_t wrong : {49, 51, -1}) {
      CAPTURE(to_string(prefill_fields(p)), wrong);
      Problem other = p;
      other.window_left = wrong;
      CHECK_FALSE(judged(p, other).passed);
    }
}

TEST_CASE("judge: for prefill a causal mask forgotten, or one key too few for one query, fails", "[judge][controls]") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const Problem p{.q_len = 200, .kv_len = 300, .causal = true, .dtype = dtype};
    REQUIRE(judged(p, p).passed);
    Problem all = p;
    all.causal = false;
    CHECK_FALSE(judged(p, all).passed);
    const Problem windowed{.q_len = 200, .kv_len = 300, .window_left = 298, .causal = true, .dtype = dtype};
    CHECK_FALSE(judged(p, windowed).passed);  // only the last query misses a key, its first
  }
}

TEST_CASE("judge: for prefill a soft cap forgotten, or of another size, fails", "[judge][controls]") {
  for (const Problem& p : problems([](Problem& problem) { problem.soft_cap = 2; }))
    for (const double wrong : {0.0, 1.8, 2.2}) {
      CAPTURE(to_string(prefill_fields(p)), wrong);
      Problem other = p;
      other.soft_cap = wrong;
      CHECK_FALSE(judged(p, other).passed);
    }
}

TEST_CASE("judge: for prefill the keys of another sequence fail", "[judge][controls]") {
  for (Problem p : problems([](Problem&) {})) {
    for (const std::int64_t block_size : {0, 16}) {
      p.block_size = block_size;
      const Problem ragged = with_lengths(p, {p.q_len, p.q_len}, {p.kv_len, p.kv_len});
      REQUIRE(judged(ragged, ragged).passed);
      CAPTURE(to_string(prefill_fields(ragged)));
      const Check check = judged(ragged, ragged, [&](std::vector<TensorSpec>& specs) {
        if (block_size == 0) {
          const Inputs inputs(specs, 1);
          for (const char* name : {"k", "v"}) {
            TensorSpec& spec = tensor_named(specs, name);
            const std::int64_t half = spec.elements() / 2;
            spec.source = [half, first = inputs.read(name, 0, half)](std::int64_t i) {
              return first[static_cast<std::size_t>(i % half)];
            };
          }
          return;
        }
        std::vector<std::int32_t>& table = integers(specs, "block_table");
        const std::ptrdiff_t row = std::ssize(table) / 2;
        std::copy(table.begin(), table.begin() + row, table.begin() + row);
      });
      CHECK_FALSE(check.passed);
    }
  }
}

TEST_CASE("judge: for prefill prefix sums off by one row fail", "[judge][controls]") {
  for (const Problem& p : problems([](Problem&) {})) {
    const Problem ragged = with_lengths(p, {p.q_len, p.q_len - 1}, {p.kv_len, p.kv_len - 1});
    CAPTURE(to_string(prefill_fields(ragged)));
    for (const char* name : {"cu_q_lens", "cu_kv_lens"}) {
      const Check check =
          judged(ragged, ragged, [&](std::vector<TensorSpec>& specs) { integers(specs, name)[1] -= 1; });
      CHECK_FALSE(check.passed);
    }
  }
}

TEST_CASE("judge: for prefill one stale page fails", "[judge][controls]") {
  // Its block is read where another one took its place.
  for (const Problem& p : problems([](Problem& problem) {
         problem.block_size = 16;
         problem.causal = false;
       })) {
    CAPTURE(to_string(prefill_fields(p)));
    const Check check = judged(p, p, [](std::vector<TensorSpec>& specs) {
      std::vector<std::int32_t>& table = integers(specs, "block_table");
      table[5] = table[table.size() / 2 + 5];
    });
    CHECK_FALSE(check.passed);
  }
}

TEST_CASE("judge: for prefill a row that is finite where it sees no key fails, and so does the reverse",
          "[judge][controls]") {
  const Problem p = with_lengths({.q_heads = 2, .causal = true}, {3, 2}, {0, 5});
  REQUIRE(judged(p, p).passed);
  Problem keys = with_lengths(p, {3, 2}, {1, 5});
  CHECK_FALSE(judged(p, keys).passed);
  keys = with_lengths(p, {3, 2}, {0, 0});
  CHECK_FALSE(judged(p, keys).passed);
}
