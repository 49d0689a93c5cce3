// The decoder's equations against PyTorch's transformers, which read the same weights from files.
#include <sys/wait.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reference/decoder/checkpoint_weights.hpp"
#include "reference/decoder/equations.hpp"
#include "reference/decoder/seeded_weights.hpp"
#include "tests/reference/decoder/model_folder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/rel_l2.hpp"

namespace inferometer::test {
namespace {

const std::vector<std::string> kFamilies{"llama", "mistral", "qwen2", "qwen3"};
const std::vector<std::int32_t> kTokens{3, 1, 400, 7, 7, 511, 0, 42, 99, 3, 1, 256, 13};

// Logits in f32 in each folder; false where transformers or PyTorch is not installed.
bool run_transformers(const std::vector<ScratchFolder>& folders) {
  std::string command = "python3 '" INFEROMETER_SOURCE_DIR "/tests/reference/decoder/transformers_logits.py' ";
  for (const std::int32_t token : kTokens) command += std::to_string(token) + ",";
  command.pop_back();
  for (const ScratchFolder& folder : folders) command += " '" + (folder / "") + "'";
  const int status = std::system(command.c_str());
  constexpr int kNotInstalled = 77;
  constexpr int kNoPython = 127;
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotInstalled || WEXITSTATUS(status) == kNoPython) return false;
  REQUIRE(status == 0);
  return true;
}

// Keys and values are rounded to f16 here, an error whose root mean square is at most 2^-11 / sqrt(3) of
// theirs, 2.8e-4, and f32 there adds 1e-6 or so. A theta twice as large moves logits by far more.
TEST_CASE("decoder: transformers computes the logits of the equations, in every family", "[decoder][transformers]") {
  const std::vector<ScratchFolder> folders(kFamilies.size());
  for (std::size_t i = 0; i < folders.size(); ++i) write_model(folders[i], tiny_of_family(kFamilies[i]), kFamilies[i]);
  if (!run_transformers(folders)) {
    WARN("not tested: python3 has no transformers with these families, or no PyTorch");
    return;
  }
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const std::string bytes = read_text(folders[i] / "logits");
    std::vector<float> theirs(bytes.size() / sizeof(float));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    DecoderShape other = tiny_of_family(kFamilies[i]);
    other.rope_theta *= 2;
    const DecoderMatrix ours = decoder_logits(CheckpointWeights(folders[i] / ""), kTokens, {});
    const DecoderMatrix of_other = decoder_logits(SeededWeights(other, 4), kTokens, {});
    INFO(kFamilies[i]);
    CHECK(rel_l2(theirs, ours.reshaped<Eigen::RowMajor>()) < 4e-4);
    CHECK(rel_l2(theirs, of_other.reshaped<Eigen::RowMajor>()) > 4e-3);
  }
}

}  // namespace
}  // namespace inferometer::test
