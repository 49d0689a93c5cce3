#include "harness/peer/manifest.hpp"

#include <filesystem>
#include <fstream>

#include "harness/peer/peer_registry.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

constexpr const char* kManifest =
    R"({"schema": "inferometer.peer/1", "command": ["python3", "a.py"], "install": "pip install a",
  "variants": {"matmul": {"a.fast": "the fast one"}}})";

std::string write(const test::ScratchFolder& folder, const std::string& text) {
  const std::string path = folder / "a.json";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("peers: a manifest names the peer, its command and its variants", "[peer]") {
  const test::ScratchFolder folder;
  const PeerManifest manifest = read_manifest(write(folder, kManifest));
  CHECK(manifest.name == "a");
  CHECK(manifest.command == std::vector<std::string>{"python3", "a.py"});
  CHECK(manifest.install == "pip install a");
  REQUIRE(manifest.variants.size() == 1);
  CHECK(manifest.variants.front().operator_name == "matmul");
  CHECK(manifest.variants.front().name == "a.fast");
}

TEST_CASE("peers: what is no manifest is refused by name", "[peer]") {
  const test::ScratchFolder folder;
  for (const char* text : {R"({"schema": "inferometer.peer/2"})", R"({"schema": "inferometer.peer/1"})",
                           R"({"schema": "inferometer.peer/1", "command": [], "install": "", "variants": {}})",
                           R"({"schema": "inferometer.peer/1", "command": ["a"], "install": "",
                            "variants": {"matmul": {"A fast one": "with a name that cannot be registered"}}})"}) {
    INFO(text);
    CHECK_THROWS_WITH(read_manifest(write(folder, text)), test::contains_text("a.json is no manifest of a peer"));
  }
  // In words for users: the JSON library's tag is not among them.
  CHECK_THROWS_WITH(read_manifest(write(folder, R"({"schema": "inferometer.peer/1"})")),
                    test::contains_text("(docs/peers.md): key 'command' not found"));
}

TEST_CASE("peers: a folder that is not there holds none, and ours are no peers", "[peer]") {
  register_peers("/nonexistent/peers");
  CHECK(find_peer("matmul", "cpu.eigen") == nullptr);
}

TEST_CASE("peers: the manifests of the project are valid", "[peer]") {
  for (const auto& entry : std::filesystem::directory_iterator(INFEROMETER_SOURCE_DIR "/experiments/peers"))
    if (entry.path().extension() == ".json") {
      INFO(entry.path());
      CHECK_FALSE(read_manifest(entry.path().string()).variants.empty());
    }
}
