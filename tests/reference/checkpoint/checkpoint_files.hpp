// Safetensors files for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "reference/checkpoint/safetensors_writer.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {

// Returns the file's path.
inline std::string write_file(const ScratchFolder& folder, const std::string& name, const std::string& bytes) {
  write_text(folder / name, bytes);
  return folder / name;
}

// A header's JSON with its length, then data.
inline std::string safetensors_bytes(const std::string& json, const std::string& data = "") {
  const std::uint64_t length = json.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + json + data;
}

template <class Element>
std::vector<std::byte> as_bytes(const std::vector<Element>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(Element));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

struct TestTensor {
  TensorPlan plan;
  std::vector<std::byte> data;
};

template <class Element>
TestTensor test_tensor(const std::string& name, TensorType type, std::vector<std::uint64_t> shape,
                       const std::vector<Element>& elements) {
  return {.plan = {name, type, std::move(shape)}, .data = as_bytes(elements)};
}

inline void write_tensors(const std::string& path, const std::vector<TestTensor>& tensors) {
  std::vector<TensorPlan> plans;
  plans.reserve(tensors.size());
  for (const TestTensor& tensor : tensors) plans.push_back(tensor.plan);
  SafetensorsWriter writer(path, plans, {{"format", "pt"}});
  for (const TestTensor& tensor : tensors) writer.write(tensor.plan.name, tensor.data);
  writer.finish();
}

// What a call throws, as a CheckpointError.
template <class Call>
CheckpointError checkpoint_error(const Call& call) {
  try {
    call();
  } catch (const CheckpointError& error) {
    return error;
  }
  FAIL("no CheckpointError");
  throw std::logic_error("unreachable");
}

}  // namespace inferometer::test
