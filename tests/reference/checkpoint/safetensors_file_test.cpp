#include "reference/checkpoint/safetensors_file.hpp"

#include <filesystem>
#include <map>

#include "reference/checkpoint/tensor_values.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(INFEROMETER_SOURCE_DIR) / "tests/fuzz/corpus";

}  // namespace

// The folders are named for what is wrong with the files in them; the fuzzer starts from the same files.
TEST_CASE("safetensors: every file of the corpus is refused for what its folder says, or valid", "[checkpoint]") {
  std::map<std::string, int> seen;
  for (const auto& entry : fs::recursive_directory_iterator(kCorpus)) {
    if (!entry.is_regular_file()) continue;
    const std::string expected = entry.path().parent_path().filename();
    INFO(expected << "/" << entry.path().filename());
    ++seen[expected];
    std::string found = "valid";
    try {
      const SafetensorsFile file(entry.path());
      for (const TensorEntry& tensor : file.header().tensors) CHECK(file.find(tensor.name) == &tensor);
    } catch (const CheckpointError& error) {
      found = fault_name(error.fault());
      CHECK(error.file() == entry.path().string());
      CHECK_THAT(std::string(error.what()), contains_text(entry.path().filename().string()));
    }
    CHECK(found == expected);
  }
  // Every fault that a file alone can have.
  for (const char* fault : {"too_short", "header_length", "header_text", "header_form", "duplicate", "unknown_type",
                            "shape_overflow", "offsets", "overlap", "hole", "trailing_bytes", "truncated", "valid"})
    CHECK(seen[fault] > 0);
}

TEST_CASE("safetensors: an error names the file, the tensor and the byte", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string json =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b.w":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})";
  const std::string path = write_file(folder, "bad.safetensors", safetensors_bytes(json, "xxxxxx"));
  const CheckpointError error = checkpoint_error([&] { const SafetensorsFile file(path); });
  CHECK(error.fault() == CheckpointFault::overlap);
  CHECK(error.tensor() == "b.w");
  CHECK(error.offset() == 8 + json.size() + 2);
  CHECK_THAT(error.what(), contains_text("bad.safetensors: tensor 'b.w': at byte " + std::to_string(10 + json.size())));
}

TEST_CASE("safetensors: a file that is absent, a folder or a pipe is refused", "[checkpoint]") {
  const ScratchFolder folder;
  for (const std::string& path : {(folder / "absent"), (folder / "."), std::string("/dev/null")}) {
    INFO(path);
    CHECK(checkpoint_error([&] { const SafetensorsFile file(path); }).fault() == CheckpointFault::io);
  }
}

TEST_CASE("safetensors: tensors are read wherever they lie, whatever their type", "[checkpoint]") {
  const SafetensorsFile odd(kCorpus / "valid/odd_address");
  const TensorEntry* const entry = odd.find("b");
  REQUIRE(entry != nullptr);
  CHECK(float_values(odd.view(*entry), 0, 1) == std::vector<float>{-2.25F});
  CHECK(odd.find("c") == nullptr);

  const SafetensorsFile scalar(kCorpus / "valid/rank_0");
  CHECK(float_values(scalar.view(scalar.header().tensors.at(0)), 0, 1) == std::vector<float>{1.5F});
  const SafetensorsFile empty(kCorpus / "valid/empty_tensors");
  CHECK(empty.header().tensors.size() == 4);
  CHECK(float_values(empty.view(*empty.find("a")), 0, 0).empty());
}

TEST_CASE("safetensors: FP8, FP16, BF16 and FP32 elements are their numbers", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string path = (folder / "types.safetensors");
  write_tensors(path, {test_tensor<std::uint8_t>("e4m3", TensorType::f8_e4m3, {4}, {0x38, 0x7e, 0x01, 0xb8}),
                       test_tensor<std::uint8_t>("e5m2", TensorType::f8_e5m2, {3}, {0x3c, 0x7b, 0x81}),
                       test_tensor<std::uint16_t>("f16", TensorType::f16, {2}, {0x3c00, 0xfbff}),
                       test_tensor<std::uint16_t>("bf16", TensorType::bf16, {2}, {0x3f80, 0xc040}),
                       test_tensor<float>("f32", TensorType::f32, {3}, {1, 2, 3}),
                       test_tensor<std::int64_t>("i64", TensorType::i64, {1}, {-7})});
  const SafetensorsFile file(path);
  const auto values = [&](const char* name, std::uint64_t count) {
    return float_values(file.view(*file.find(name)), 0, count);
  };
  // E4M3: bias 7, largest 448, least 2^-9. E5M2: bias 15, largest 57344, least 2^-16.
  CHECK(values("e4m3", 4) == std::vector<float>{1.0F, 448.0F, 0x1p-9F, -1.0F});
  CHECK(values("e5m2", 3) == std::vector<float>{1.0F, 57344.0F, -0x1p-16F});
  CHECK(values("f16", 2) == std::vector<float>{1.0F, -65504.0F});
  CHECK(values("bf16", 2) == std::vector<float>{1.0F, -3.0F});
  CHECK(float_values(file.view(*file.find("f32")), 1, 2) == std::vector<float>{2, 3});
  CHECK(std::isnan(f8_e4m3_value(0x7f)));
  CHECK(std::isinf(f8_e5m2_value(0x7c)));
  CHECK(stored_values<std::int64_t>(file.view(*file.find("i64"))) == std::vector<std::int64_t>{-7});
  CHECK_THROWS_AS(values("i64", 1), std::invalid_argument);
  CHECK_THROWS_AS(values("f32", 4), std::invalid_argument);
  CHECK_THROWS_AS(stored_values<std::int32_t>(file.view(*file.find("i64"))), std::invalid_argument);
}
