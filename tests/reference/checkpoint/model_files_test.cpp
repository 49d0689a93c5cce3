#include "reference/checkpoint/model_files.hpp"

#include <filesystem>

#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/tensor_values.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

constexpr const char* kIndex = "model.safetensors.index.json";

std::string index_of(const std::string& map) {
  return R"({"metadata": {"total_size": 8}, "weight_map": {)" + map + "}}";
}

// Two files: a in the first, b in the second.
void write_shards(const ScratchFolder& folder) {
  write_tensors((folder / "1.safetensors"), {test_tensor<float>("a", TensorType::f32, {1}, {1})});
  write_tensors((folder / "2.safetensors"), {test_tensor<float>("b", TensorType::f32, {1}, {2})});
}

CheckpointError opening(const ScratchFolder& folder) {
  return checkpoint_error([&] { const ModelFiles model((folder / ".")); });
}

}  // namespace

TEST_CASE("model files: an index ties its files together", "[checkpoint]") {
  const ScratchFolder folder;
  write_shards(folder);
  write_file(folder, kIndex, index_of(R"("a": "1.safetensors", "b": "2.safetensors")"));
  const ModelFiles model((folder / "."));
  CHECK(model.names() == std::vector<std::string>{"a", "b"});
  CHECK(float_values(model.tensor("b"), 0, 1) == std::vector<float>{2});
  CHECK_FALSE(model.has("c"));
  CHECK(checkpoint_error([&] { model.tensor("c"); }).fault() == CheckpointFault::missing);
}

TEST_CASE("model files: a folder with one file, and that file itself, are the same model", "[checkpoint]") {
  const ScratchFolder folder;
  CHECK(opening(folder).fault() == CheckpointFault::missing);
  const std::string path = (folder / "model.safetensors");
  write_tensors(path, {test_tensor<float>("a", TensorType::f32, {1}, {1})});
  for (const std::string& name : {path, (folder / ".")}) {
    const ModelFiles model(name);
    CHECK(model.names() == std::vector<std::string>{"a"});
    CHECK(std::filesystem::equivalent(model.folder(), (folder / ".")));
  }
}

TEST_CASE("model files: an index that does not fit its files is refused by the tensor's name", "[checkpoint]") {
  const ScratchFolder folder;
  write_shards(folder);
  const auto with_index = [&](const std::string& map) {
    write_file(folder, kIndex, index_of(map));
    return opening(folder);
  };
  const CheckpointError elsewhere = with_index(R"("a": "2.safetensors", "b": "2.safetensors")");
  CHECK(elsewhere.fault() == CheckpointFault::missing);
  CHECK(elsewhere.tensor() == "a");
  CHECK(with_index(R"("a": "1.safetensors", "b": "1.safetensors")").tensor() == "b");
  CHECK(with_index(R"("a": "1.safetensors", "c": "2.safetensors")").tensor() == "b");
  CHECK(with_index(R"("a": "1.safetensors", "b": "3.safetensors")").fault() == CheckpointFault::io);
  for (const char* name : {"../1.safetensors", "/etc/passwd", "", "..", "x/1.safetensors"}) {
    INFO(name);
    const CheckpointError error = with_index(R"("a": ")" + std::string(name) + "\"");
    CHECK(error.fault() == CheckpointFault::header_form);
    CHECK(error.tensor() == "a");
  }
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": {"a": 1}})"}) {
    INFO(text);
    write_file(folder, kIndex, text);
    CHECK(opening(folder).fault() == CheckpointFault::header_form);
  }
  write_file(folder, kIndex, index_of(R"("a": "1.safetensors", "a": "2.safetensors")"));
  CHECK_THROWS_AS(ModelFiles((folder / ".")), ConfigError);
}
