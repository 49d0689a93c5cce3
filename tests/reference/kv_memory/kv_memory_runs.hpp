// Runs of kv_memory for tests: traces written for the occasion, pools counted in slots, ledgers read back.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/kv_memory/ledger.hpp"
#include "reference/kv_memory/problem.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline constexpr const char* kPolicies[] = {"cpu.reserve_max", "cpu.reserve_pow2", "cpu.reserve_oracle", "cpu.paged",
                                            "cpu.paged_prefix"};

// A file with this text, gone at the end of the test.
class TemporaryTrace {
 public:
  explicit TemporaryTrace(const std::string& text, const std::string& extension = ".csv") {
    static int made = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("inferometer_" + std::to_string(getpid()) + "_" + std::to_string(++made) + extension);
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryTrace() {
    std::error_code ignored;  // a file that stays in the temporary folder fails no test
    std::filesystem::remove(path_, ignored);
  }
  TemporaryTrace(const TemporaryTrace&) = delete;
  TemporaryTrace& operator=(const TemporaryTrace&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Rows of a CSV trace without times: prompt and output tokens.
inline std::string csv_of(const std::vector<std::pair<int, int>>& requests) {
  std::string text = "ContextTokens,GeneratedTokens\n";
  for (const auto& [prompt, output] : requests) text += std::to_string(prompt) + "," + std::to_string(output) + "\n";
  return text;
}

// The fields of a problem with a pool of so many slots, of OPT-13B's 800 KiB each, in blocks of one; `more` replaces
// and adds.
inline Fields problem_fields(const std::string& trace, std::int64_t slots, const Fields& more = {}) {
  Fields fields = {{"trace", trace},
                   {"requests", std::int64_t{0}},
                   {"pool_bytes", slots * 40 * 40 * 128 * 2 * 2},
                   {"block_size", std::int64_t{1}}};
  for (const auto& one : more) {
    std::erase_if(fields, [&](const auto& field) { return field.first == one.first; });
    fields.push_back(one);
  }
  return fields;
}

inline KvMemoryProblem parse_problem(const Fields& fields) {
  return *static_cast<const KvMemoryProblem*>(find_operator("kv_memory")->parse(fields).get());
}

// The ledger of a run that its judge passed.
inline KvLedger run_policy(const std::string& variant, const Fields& fields) {
  const VariantRun run = run_variant("kv_memory", variant, fields);
  INFO(variant << ": " << run.check.reason);
  REQUIRE(run.unsupported.empty());
  REQUIRE(run.check.passed);
  std::vector<std::int32_t> limbs(kKvCounts * kKvLimbs);
  std::memcpy(limbs.data(), run.raw.at("ledger").data(), limbs.size() * sizeof(std::int32_t));
  return KvLedger::read(limbs);
}

inline double share_of_pool(const KvLedger& ledger, KvCount state) {
  return static_cast<double>(ledger[state]) / static_cast<double>(ledger.slot_steps());
}

// Of tokens, in the steps in which a request waits.
inline double share_under_load(const KvLedger& ledger) {
  return static_cast<double>(ledger[KvCount::loaded_token]) /
         static_cast<double>(ledger[KvCount::pool_slots] * ledger[KvCount::loaded_steps]);
}

}  // namespace inferometer::test
