#include "kernels/attention_decode/decode_plan.hpp"

#include "kernels/attention_decode/partition.hpp"
#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr GpuLimits kH200{.sm_count = 132, .block_smem_bytes = 227 * 1024, .clusters = true};
constexpr GpuLimits kA100{.sm_count = 108, .block_smem_bytes = 163 * 1024};

AttentionDecodeProblem llama3_8b(std::int64_t batch, std::int64_t context, std::int64_t kv_bits = 16) {
  AttentionDecodeProblem p;
  p.batch = batch;
  p.context = context;
  p.q_heads = 32;
  p.kv_heads = 8;
  p.kv_bits = kv_bits;
  return p;
}

TEST_CASE("partition: the parts of a sequence cover its keys without overlap", "[attention_decode]") {
  for (const std::int32_t length : {0, 1, 31, 32, 33, 257, 1000, 8192})
    for (const std::int32_t parts : {1, 2, 3, 16, 17, 300}) {
      const std::int32_t keys = part_keys(length, parts);
      const std::int32_t used = nonempty_parts(length, keys);
      INFO("length " << length << " parts " << parts << " keys " << keys << " used " << used);
      CHECK(keys % kPartKeys == 0);
      CHECK(used >= 1);
      CHECK(used <= parts);
      CHECK(std::int64_t{used} * keys >= length);
      CHECK((used == 1 || (used - 1) * keys < length));  // the last one is not empty
    }
}

TEST_CASE("partition: parts begin at or before the oldest key of any window, less than one step before",
          "[attention_decode]") {
  CHECK(first_part_key(1000, 1, -1) == 0);
  CHECK(first_part_key(10, 1, 100) == 0);
  CHECK(first_part_key(1000, 1, 2000000000) == 0);
  for (const std::int32_t length : {200, 256, 1000})
    for (const std::int32_t q_len : {1, 8})
      for (const std::int32_t window : {0, 1, 31, 32, 100}) {
        const std::int32_t oldest = length - q_len - window;  // the first query's
        const std::int32_t first = first_part_key(length, q_len, window);
        INFO("length " << length << " q_len " << q_len << " window " << window << " first " << first);
        CHECK(first % kPartKeys == 0);
        CHECK(first <= oldest);
        CHECK(oldest - first < kPartKeys);
      }
}

TEST_CASE("decode plan: splits given are the parts of every sequence, in one form for any batch",
          "[attention_decode]") {
  for (const std::int64_t batch : {1, 3, 64}) {
    AttentionDecodeProblem p = llama3_8b(batch, 100);
    p.splits = 9;
    const decode::Plan plan = decode::make_plan(p, kH200);
    CHECK(plan.parts == 9);
    CHECK(plan.keys_per_part == 0);
    CHECK(plan.units == batch * 8);
    CHECK_FALSE(plan.kernel.wide);
    CHECK_FALSE(plan.cluster);
  }
}

TEST_CASE("decode plan: chosen parts hold every context, the longest needs the last one", "[attention_decode]") {
  for (const GpuLimits& gpu : {kH200, kA100})
    for (const std::int64_t kv_bits : {16, 8, 4})
      for (const std::int64_t window : {-1, 700})
        for (const std::int64_t batch : {1, 8, 32, 128})
          for (const std::int64_t context : {1, 64, 65, 1024, 8192, 32768}) {
            AttentionDecodeProblem p = llama3_8b(batch, context, kv_bits);
            p.window_left = window;
            const decode::Plan plan = decode::make_plan(p, gpu);
            const std::int64_t covered =
                context - first_part_key(static_cast<std::int32_t>(context), 1, static_cast<std::int32_t>(window));
            INFO("batch " << batch << " context " << context << " parts " << plan.parts);
            CHECK(plan.keys_per_part % kPartKeys == 0);
            CHECK(plan.parts * plan.keys_per_part >= covered);
            CHECK((plan.parts - 1) * plan.keys_per_part < covered);
          }
}

// The fastest of sweeps over parts on an H200 (results/notes/decode.md).
TEST_CASE("decode plan: the parts and the form chosen are those measured best", "[attention_decode]") {
  struct Best {
    std::int64_t batch, context, kv_bits, parts;
    bool wide, cluster;
  };
  for (const Best best :
       {Best{1, 1024, 16, 8, false, true},    Best{8, 1024, 16, 1, true, false},   Best{32, 1024, 16, 1, false, false},
        Best{128, 1024, 16, 1, false, false}, Best{1, 8192, 16, 8, true, true},    Best{8, 8192, 16, 2, true, true},
        Best{32, 8192, 16, 1, false, false},  Best{1, 32768, 16, 8, true, true},   Best{32, 32768, 16, 1, false, false},
        Best{128, 8192, 16, 1, true, false},  Best{1, 4096, 16, 8, true, true},    Best{8, 32768, 16, 2, true, true},
        Best{1, 1024, 8, 8, false, true},     Best{1, 4096, 8, 8, true, true},     Best{1, 8192, 8, 8, true, true},
        Best{8, 1024, 8, 2, true, true},      Best{8, 8192, 8, 2, true, true},     Best{8, 32768, 8, 2, true, true},
        Best{32, 1024, 8, 1, false, false},   Best{32, 32768, 8, 1, false, false}, Best{1, 1024, 4, 8, false, true},
        Best{1, 4096, 4, 8, true, true},      Best{1, 8192, 4, 16, true, false},   Best{1, 32768, 4, 16, true, false},
        Best{8, 1024, 4, 2, true, true},      Best{8, 8192, 4, 8, false, false},   Best{8, 32768, 4, 8, false, false},
        Best{32, 1024, 4, 1, false, false},   Best{32, 32768, 4, 2, false, false}}) {
    const decode::Plan plan = decode::make_plan(llama3_8b(best.batch, best.context, best.kv_bits), kH200);
    INFO("batch " << best.batch << " context " << best.context << " kv_bits " << best.kv_bits);
    CHECK(plan.parts == best.parts);
    CHECK(plan.kernel.wide == best.wide);
    CHECK(plan.cluster == best.cluster);
  }
}

TEST_CASE("decode plan: a GPU without clusters or with less shared memory gets neither form", "[attention_decode]") {
  for (const std::int64_t context : {1024, 8192}) {
    const decode::Plan plan = decode::make_plan(llama3_8b(1, context), kA100);
    CHECK_FALSE(plan.cluster);
    CHECK_FALSE(plan.kernel.wide);
    CHECK(plan.workspace_bytes > 0);
  }
}

TEST_CASE("decode plan: clusters are made only where all of them run at once", "[attention_decode]") {
  for (std::int64_t batch = 1; batch <= 16; ++batch)
    for (const std::int64_t context : {512, 1024, 4096, 8192, 32768}) {
      const decode::Plan plan = decode::make_plan(llama3_8b(batch, context), kH200);
      INFO("batch " << batch << " context " << context << " parts " << plan.parts);
      if (!plan.cluster) continue;
      CHECK((plan.parts == 2 || plan.parts == 4 || plan.parts == 8));
      // Clusters that an H200 holds with one block an SM, as cudaOccupancyMaxActiveClusters counts them.
      CHECK(plan.units <= (plan.parts == 2 ? 66 : plan.parts == 4 ? 30 : 15));
    }
}

TEST_CASE("decode plan: a few hundred keys make a cluster too", "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(1, 600);
  p.q_heads = 8;
  p.kv_heads = 2;
  for (const std::int64_t kv_bits : {16, 8, 4}) {
    p.kv_bits = kv_bits;
    CHECK(decode::make_plan(p, kH200).cluster);
  }
}

TEST_CASE("decode plan: ragged contexts are cut by their sum, not by the longest", "[attention_decode]") {
  AttentionDecodeProblem ragged = llama3_8b(64, 8192);
  ragged.contexts.assign(64, 64);
  ragged.contexts[0] = 8192;
  CHECK(decode::make_plan(ragged, kH200).parts > decode::make_plan(llama3_8b(64, 8192), kH200).parts);
}

TEST_CASE("decode plan: the workspace holds states and outputs of every part, and nothing for one",
          "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(2, 4096);
  p.splits = 5;
  const decode::Plan plan = decode::make_plan(p, kH200);
  const auto slots = static_cast<std::size_t>(plan.units * plan.parts * plan.block_rows());
  CHECK(plan.states_at % 256 == 0);
  CHECK(plan.outputs_at % 256 == 0);
  CHECK(plan.outputs_at >= plan.states_at + slots * 8);
  CHECK(plan.workspace_bytes >= plan.outputs_at + slots * 128 * 4);
  p.splits = 1;
  CHECK(decode::make_plan(p, kH200).workspace_bytes == 0);
}

TEST_CASE("decode plan: rows in excess of a block go to further row blocks", "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(1, 100);
  p.q_heads = 8 * 7;
  CHECK(decode::make_plan(p, kH200).row_blocks == 1);  // 7 rows in one of 8
  p.q_len = 3;
  CHECK(decode::make_plan(p, kH200).row_blocks == 2);  // 21 rows in two of 16
  p.head_dim = 256;
  CHECK(decode::make_plan(p, kH200).row_blocks == 3);  // 21 rows in three of 8
}

TEST_CASE("decode plan: what no kernel was made for is refused with what is allowed", "[attention_decode]") {
  AttentionDecodeProblem p = llama3_8b(1, 100, 4);
  p.head_dim = 80;
  CHECK(decode::unsupported_by_kernel(p) == "head_dim must be one of 64, 96, 128, 192, 256 with quantised KV, got 80");
  p = llama3_8b(70000, 1);
  CHECK(decode::unsupported_by_kernel(p) ==
        "batch x blocks of query rows must be at most 65535, for the grid, got 70000");
}

}  // namespace
}  // namespace inferometer
