#include "reference/checkpoint/safetensors_writer.hpp"

#include <filesystem>

#include "reference/checkpoint/safetensors_file.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

namespace fs = std::filesystem;
using Start = SafetensorsWriter::Start;

const std::vector<TensorPlan> kPlans{
    {"bytes", TensorType::u8, {3}}, {"words", TensorType::i64, {2}}, {"none", TensorType::f32, {0, 5}}};
const std::vector<std::byte> kBytes = as_bytes(std::vector<std::uint8_t>{1, 2, 3});
const std::vector<std::byte> kWords = as_bytes(std::vector<std::int64_t>{4, 5});

}  // namespace

TEST_CASE("safetensors: what is written in any order is read back, aligned to its elements", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string path = (folder / "m.safetensors");
  {
    SafetensorsWriter writer(path, kPlans, {{"format", "pt"}, {"quote", "\"\n"}});
    writer.write("bytes", kBytes);
    CHECK_FALSE(fs::exists(path));
    writer.write("words", kWords);
    writer.finish();
  }
  CHECK_FALSE(fs::exists(path + ".partial"));
  const SafetensorsFile file(path);
  CHECK(file.header().metadata == std::map<std::string, std::string>{{"format", "pt"}, {"quote", "\"\n"}});
  const TensorView words = file.view(*file.find("words"));
  CHECK(std::vector<std::byte>(words.data.begin(), words.data.end()) == kWords);
  CHECK(reinterpret_cast<std::uintptr_t>(words.data.data()) % 8 == 0);
  const TensorView bytes = file.view(*file.find("bytes"));
  CHECK(std::vector<std::byte>(bytes.data.begin(), bytes.data.end()) == kBytes);
  CHECK(file.find("none")->shape == std::vector<std::uint64_t>{0, 5});
}

TEST_CASE("safetensors: a file appears whole or not at all", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string path = write_file(folder, "m.safetensors", "what was there");
  {
    SafetensorsWriter writer(path, kPlans, {});
    writer.write("bytes", kBytes);
    const CheckpointError error = checkpoint_error([&] { writer.finish(); });
    CHECK(error.fault() == CheckpointFault::missing);
    CHECK(error.tensor() == "words");
  }
  CHECK(read_text(path) == "what was there");
  CHECK_FALSE(fs::exists(path + ".partial"));
}

TEST_CASE("safetensors: a writer refuses what its header does not say", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string path = (folder / "m.safetensors");
  SafetensorsWriter writer(path, kPlans, {});
  CHECK(checkpoint_error([&] { writer.write("bytes", kWords); }).fault() == CheckpointFault::content);
  CHECK(checkpoint_error([&] { writer.write("other", kWords); }).fault() == CheckpointFault::missing);
  const auto open = [&](const std::vector<TensorPlan>& plans) { const SafetensorsWriter made(path + "2", plans, {}); };
  CHECK(checkpoint_error([&] {
          open({{"a", TensorType::u8, {1}}, {"a", TensorType::u8, {1}}});
        }).fault() == CheckpointFault::duplicate);
  CHECK(checkpoint_error([&] {
          open({{"a", TensorType::f64, {std::uint64_t{1} << 60}}});
        }).fault() == CheckpointFault::shape_overflow);
  CHECK(checkpoint_error([&] { open({{"a", TensorType::f4, {3}}}); }).fault() == CheckpointFault::offsets);
  CHECK(checkpoint_error([&] { const SafetensorsWriter made((folder / "no/such/folder"), kPlans, {}); }).fault() ==
        CheckpointFault::io);
}

TEST_CASE("safetensors: two writers never have the same file", "[checkpoint]") {
  const ScratchFolder folder;
  const SafetensorsWriter first((folder / "m"), kPlans, {});
  const CheckpointError error = checkpoint_error([&] { const SafetensorsWriter second((folder / "m"), kPlans, {}); });
  CHECK_THAT(error.what(), contains_text("another program is writing it"));
}

TEST_CASE("safetensors: an interrupted file is gone on with, if it was begun with the same tensors", "[checkpoint]") {
  const ScratchFolder folder;
  const std::string path = (folder / "m.safetensors");
  {
    SafetensorsWriter writer(path, kPlans, {});
    writer.write("words", kWords);
    writer.keep();
  }
  CHECK(checkpoint_error([&] {
          const SafetensorsWriter other(path, {{"bytes", TensorType::u8, {4}}}, {}, Start::resume);
        }).fault() == CheckpointFault::content);
  {
    SafetensorsWriter writer(path, kPlans, {}, Start::resume);
    writer.assume_written("words");
    writer.write("bytes", kBytes);
    writer.finish();
  }
  const SafetensorsFile file(path);
  const TensorView words = file.view(*file.find("words"));
  CHECK(std::vector<std::byte>(words.data.begin(), words.data.end()) == kWords);
  CHECK(checkpoint_error([&] { const SafetensorsWriter none(path, kPlans, {}, Start::resume); }).fault() ==
        CheckpointFault::io);
}
