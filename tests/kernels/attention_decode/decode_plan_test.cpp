#include "kernels/attention_decode/decode_plan.hpp"

#include "kernels/attention_decode/partition.hpp"
#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr int kSmCount = 132;

AttentionDecodeProblem llama3_8b(std::int64_t batch, std::int64_t context) {
  AttentionDecodeProblem p;
  p.batch = batch;
  p.context = context;
  p.q_heads = 32;
  p.kv_heads = 8;
  return p;
}

TEST_CASE("partition: the parts of a sequence cover its keys without overlap", "[attention_decode]") {
  for (const std::int32_t length : {0, 1, 15, 16, 17, 257, 1000, 8192})
    for (const std::int32_t parts : {1, 2, 3, 16, 17, 300}) {
      const std::int32_t keys = part_keys(length, parts);
      const std::int32_t used = nonempty_parts(length, keys);
      INFO("length " << length << " parts " << parts << " keys " << keys << " used " << used);
      CHECK(keys % kTileKeys == 0);
      CHECK(used >= 1);
      CHECK(used <= parts);
      CHECK(std::int64_t{used} * keys >= length);
      CHECK((used == 1 || (used - 1) * keys < length));  // the last one is not empty
    }
}

TEST_CASE("decode plan: splits given are the parts of every sequence", "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(3, 100);
  p.splits = 9;
  const decode::Plan plan = decode::make_plan(p, kSmCount);
  CHECK(plan.parts == 9);
  CHECK(plan.keys_per_part == 0);
  CHECK(plan.units == 3 * 8);
}

TEST_CASE("decode plan: chosen parts hold every context, the longest needs the last one", "[attention_decode]") {
  for (const std::int64_t batch : {1, 8, 32, 128})
    for (const std::int64_t context : {1, 64, 65, 1024, 8192, 32768}) {
      const decode::Plan plan = decode::make_plan(llama3_8b(batch, context), kSmCount);
      INFO("batch " << batch << " context " << context << " parts " << plan.parts);
      CHECK(plan.keys_per_part % kTileKeys == 0);
      CHECK(plan.parts * plan.keys_per_part >= context);
      CHECK((plan.parts - 1) * plan.keys_per_part < context);
    }
}

// The fastest of a sweep over parts on an H200 (results/notes/decode.md).
TEST_CASE("decode plan: the parts chosen are those measured best", "[attention_decode]") {
  struct Best {
    std::int64_t batch, context, parts;
  };
  for (const Best best : {Best{1, 1024, 8}, Best{8, 1024, 2}, Best{32, 1024, 1}, Best{128, 1024, 1}, Best{1, 8192, 16},
                          Best{8, 8192, 2}, Best{32, 8192, 1}, Best{1, 32768, 16}, Best{32, 32768, 1}}) {
    INFO("batch " << best.batch << " context " << best.context);
    CHECK(decode::make_plan(llama3_8b(best.batch, best.context), kSmCount).parts == best.parts);
  }
}

TEST_CASE("decode plan: ragged contexts are cut by their sum, not by the longest", "[attention_decode]") {
  AttentionDecodeProblem ragged = llama3_8b(64, 8192);
  ragged.contexts.assign(64, 64);
  ragged.contexts[0] = 8192;
  CHECK(decode::make_plan(ragged, kSmCount).parts > decode::make_plan(llama3_8b(64, 8192), kSmCount).parts);
}

TEST_CASE("decode plan: the workspace holds states and outputs of every part, and nothing for one",
          "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(2, 4096);
  p.splits = 5;
  const decode::Plan plan = decode::make_plan(p, kSmCount);
  const auto slots = static_cast<std::size_t>(plan.units * plan.parts * plan.block_rows);
  CHECK(plan.states_at % 256 == 0);
  CHECK(plan.outputs_at % 256 == 0);
  CHECK(plan.outputs_at >= plan.states_at + slots * 8);
  CHECK(plan.workspace_bytes >= plan.outputs_at + slots * 128 * 4);
  p.splits = 1;
  CHECK(decode::make_plan(p, kSmCount).workspace_bytes == 0);
}

TEST_CASE("decode plan: rows in excess of a block go to further row blocks", "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(1, 100);
  p.q_heads = 8 * 7;
  CHECK(decode::make_plan(p, kSmCount).row_blocks == 1);  // 7 rows in one of 8
  p.q_len = 3;
  CHECK(decode::make_plan(p, kSmCount).row_blocks == 2);  // 21 rows in two of 16
  p.head_dim = 256;
  CHECK(decode::make_plan(p, kSmCount).row_blocks == 3);  // 21 rows in three of 8
}

}  // namespace
}  // namespace inferometer
