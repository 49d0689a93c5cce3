// Runs cpu.naive of attention_decode and holds its outputs against the judge.
#pragma once

#include "tests/support/catch.hpp"
#include "tests/support/decode_shape.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline VariantRun run_naive(const DecodeShape& shape, const EditTensors& edit = {}) {
  return run_variant("attention_decode", "cpu.naive", shape.fields(), 1, edit);
}

inline VariantRun check_passes(const DecodeShape& shape, const EditTensors& edit = {}) {
  CAPTURE(to_string(shape.fields()));
  VariantRun run = run_naive(shape, edit);
  INFO(run.check.reason);
  CHECK(run.check.passed);
  return run;
}

}  // namespace inferometer::test
