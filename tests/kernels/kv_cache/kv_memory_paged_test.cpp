// The paged policies of kv_memory on pools small enough to count by hand.
#include <string>
#include <vector>

#include "kernels/kv_cache/kv_memory_paged.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::csv_of;
using test::problem_fields;
using test::run_policy;
using test::TemporaryTrace;

namespace {

KvLedger paged(const std::string& trace, std::int64_t slots, std::int64_t block_size, Fields more = {}) {
  more.emplace_back("block_size", block_size);
  return run_policy("cpu.paged", problem_fields(trace, slots, more));
}

}  // namespace

TEST_CASE("kv_memory paged: of the last block, slots to come are reserved and the others internal",
          "[kv_memory][paged]") {
  // Prompt 3, 3 outputs: 3, 4, 5 tokens. Blocks of 4: one, one, two, of which three slots are never filled.
  const TemporaryTrace trace(csv_of({{3, 3}}));
  const KvLedger ledger = paged(trace.path(), 10, 4);
  CHECK(ledger[KvCount::steps] == 3);
  CHECK(ledger[KvCount::token] == 3 + 4 + 5);
  CHECK(ledger[KvCount::reserved] == 1);
  CHECK(ledger[KvCount::internal] == 3);
  CHECK(ledger[KvCount::external] == 6);  // 2 in each step: 10 slots are two blocks of 4
  CHECK(ledger[KvCount::free] == 4 + 4);
}

TEST_CASE("kv_memory paged: lengths around a block take the blocks that hold them", "[kv_memory][paged]") {
  for (const auto& [tokens, blocks] :
       std::vector<std::pair<int, std::int64_t>>{{1, 1}, {15, 1}, {16, 1}, {17, 2}, {32, 2}, {33, 3}}) {
    CAPTURE(tokens);
    const TemporaryTrace trace(csv_of({{tokens, 1}}));
    const KvLedger ledger = paged(trace.path(), 64, 16);
    CHECK(ledger[KvCount::token] == tokens);
    CHECK(ledger[KvCount::token] + ledger[KvCount::internal] == 16 * blocks);
    CHECK(ledger[KvCount::free] == 64 - 16 * blocks);
  }
}

TEST_CASE("kv_memory paged: a request that can never fit is refused and nobody waits behind it", "[kv_memory][paged]") {
  const TemporaryTrace trace(csv_of({{64, 2}, {64, 1}}));  // 65 tokens need 5 blocks of 4
  const KvLedger ledger = paged(trace.path(), 64, 16);
  CHECK(ledger[KvCount::refused] == 1);
  CHECK(ledger[KvCount::generated] == 1);
  CHECK(ledger[KvCount::steps] == 1);
}

TEST_CASE("kv_memory paged: when no block is free the latest arrival is preempted and computed again",
          "[kv_memory][paged]") {
  // The first ends in step 8; the second is preempted once, computes 16 tokens again and ends in step 11.
  const TemporaryTrace trace(csv_of({{12, 8}, {12, 8}}));
  const KvLedger tight = paged(trace.path(), 32, 4);
  CHECK(tight[KvCount::steps] == 11);
  CHECK(tight[KvCount::preemptions] == 1);
  CHECK(tight[KvCount::recomputed] == 16);
  CHECK(tight[KvCount::generated] == 16);
  const KvLedger ample = paged(trace.path(), 80, 4);
  CHECK(ample[KvCount::steps] == 8);
  CHECK(ample[KvCount::preemptions] == 0);
  CHECK(ample[KvCount::generated] == 16);
}

TEST_CASE("kv_memory paged: the watermark keeps blocks free when others run, and only then", "[kv_memory][paged]") {
  const TemporaryTrace trace(csv_of({{16, 4}, {16, 4}}));
  const auto with_watermark = [&](double ratio) { return paged(trace.path(), 40, 4, {{"watermark_ratio", ratio}}); };
  // 10 blocks: 4 each in the first step. Left over: 2.
  CHECK(with_watermark(0.2)[KvCount::peak_running] == 2);
  CHECK(with_watermark(0.3)[KvCount::peak_running] == 1);
  const TemporaryTrace large(csv_of({{40, 1}}));
  CHECK(paged(large.path(), 40, 4, {{"watermark_ratio", 0.5}})[KvCount::generated] == 1);
}

TEST_CASE("kv_memory paged_prefix: a shared block is a slot once, and stays cached after its end",
          "[kv_memory][paged][prefix]") {
  // Two prompts of 1024 tokens that agree in the first 512. The first holds 1024, 1025, 1026 tokens in steps 0 to 2;
  // the second comes at 60 ms, step 2, with 1024, then 1025. A pool of 8 blocks of 512. The last request comes at 90
  // ms.
  const std::string trace = std::string(INFEROMETER_SOURCE_DIR) + "/tests/data/mooncake_tiny.jsonl";
  const Fields fields = problem_fields(
      trace, 4096,
      {{"block_size", std::int64_t{512}}, {"requests", std::int64_t{2}}, {"arrivals", std::string("trace")}});
  const KvLedger ledger = run_policy("cpu.paged_prefix", fields);
  CHECK(ledger[KvCount::steps] == 4);
  CHECK(ledger[KvCount::reused_prompt] == 512);
  CHECK(ledger[KvCount::token] == 1024 + 1025 + (1026 + 512) + 1025);
  CHECK(ledger[KvCount::shared_saved] == 512);  // in step 2
  CHECK(ledger[KvCount::reserved] == 1);        // of the first, in step 1
  CHECK(ledger[KvCount::internal] == 510 + 510 + 511);
  CHECK(ledger[KvCount::cached] == 512);  // the first one's second block, in step 3
  const KvLedger plain = run_policy("cpu.paged", fields);
  CHECK(plain[KvCount::token] == ledger[KvCount::token] + 512);
  CHECK(plain[KvCount::cached] == 0);
  CHECK(plain[KvCount::reused_prompt] == 0);
}

TEST_CASE("kv_memory paged_prefix: prompts get equal tokens exactly where their hash ids are equal",
          "[kv_memory][paged][prefix]") {
  const auto tokens_of = [](const KvRequest& request, std::int64_t begin, std::int64_t end) {
    std::vector<TokenId> tokens;
    make_tokens(request, begin, end, tokens);
    return tokens;
  };
  const KvRequest a{.id = 1, .prompt = 600, .output = 9, .hash_ids = {5, 6}};
  const KvRequest b{.id = 2, .prompt = 900, .output = 9, .hash_ids = {5, 6}};
  const KvRequest c{.id = 3, .prompt = 900, .output = 9, .hash_ids = {5, 7}};
  CHECK(tokens_of(a, 0, 600) == tokens_of(b, 0, 600));
  CHECK(tokens_of(a, 0, 512) == tokens_of(c, 0, 512));
  CHECK(tokens_of(a, 512, 513) != tokens_of(c, 512, 513));
  CHECK(tokens_of(a, 600, 608) != tokens_of(b, 600, 608));  // an output and the rest of a prompt
  const std::vector<TokenId> whole = tokens_of(a, 0, 608);
  CHECK(tokens_of(a, 500, 604) == std::vector<TokenId>(whole.begin() + 500, whole.begin() + 604));
}
