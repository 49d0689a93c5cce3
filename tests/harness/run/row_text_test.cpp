#include "harness/run/row_text.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("row text: the fields that differ within the sweep, and none that all rows share", "[run][progress]") {
  Sweep sweep;
  sweep.operator_name = "attention_prefill";
  const auto add = [&](const char* variant, std::int64_t length, bool causal) {
    sweep.rows.push_back({.id = {},
                          .operator_name = sweep.operator_name,
                          .variant = variant,
                          .problem = {{"batch", std::int64_t{1}}, {"q_len", length}, {"causal", causal}},
                          .baseline_id = {}});
  };
  add("cpu.naive", 256, false);
  CHECK(RowTexts(sweep)(sweep.rows[0]) == "attention_prefill/cpu.naive");
  add("cpu.flash", 256, false);
  CHECK(RowTexts(sweep)(sweep.rows[1]) == "attention_prefill/cpu.flash");
  add("cpu.flash", 1024, false);
  CHECK(RowTexts(sweep)(sweep.rows[2]) == "attention_prefill/cpu.flash q_len=1024");
  add("cpu.flash", 1024, true);
  CHECK(RowTexts(sweep)(sweep.rows[0]) == "attention_prefill/cpu.naive q_len=256 causal=false");
  CHECK(RowTexts(sweep)(sweep.rows[3]) == "attention_prefill/cpu.flash q_len=1024 causal=true");
}
