#include "harness/measure/memory_ledger.hpp"

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("ledger: memory is held from allocation to the last owner, and the peak stays", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  MemoryLedger ledger(*device, 1 << 20);
  auto inputs = ledger.allocate(1000, "inputs");
  {
    auto workspace = ledger.allocate(500, "workspace");
    std::vector<std::shared_ptr<void>> owners(2, workspace);
    workspace.reset();
    owners.pop_back();
    CHECK(ledger.held_bytes() == 1500);  // one owner is left
  }
  CHECK(ledger.held_bytes() == 1000);
  inputs.reset();
  const auto draft = ledger.allocate(200, "draft_tokens");
  CHECK(ledger.held_bytes() == 200);
  CHECK(ledger.peak_bytes() == 1500);
  CHECK(ledger.peak_by_role() ==
        std::map<std::string, std::size_t>{{"inputs", 1000}, {"workspace", 500}, {"draft_tokens", 200}});
}

TEST_CASE("ledger: a role that results could not name is refused", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  MemoryLedger ledger(*device, 1000);
  for (const std::string role : {"packed weights", "Weights", "", "4bit", "a-b"}) {
    INFO(role);
    CHECK_THROWS_AS(ledger.allocate(1, role), std::invalid_argument);
  }
  CHECK(ledger.allocate(1, "packed_weights") != nullptr);
  CHECK(ledger.peak_bytes() == 1);
}

TEST_CASE("ledger: past its limit an allocation is refused with the bytes asked for and left", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  MemoryLedger ledger(*device, 4096);
  const auto held = ledger.allocate(4000, "inputs");
  try {
    ledger.allocate(97, "outputs");
    FAIL("97 bytes past 4000 of 4096 were given");
  } catch (const OutOfMemory& error) {
    CHECK(error.asked_bytes() == 97);
    CHECK(error.free_bytes() == 96);
    CHECK(std::string(error.what()).find("outputs") != std::string::npos);
  }
  CHECK(ledger.peak_bytes() == 4000);
  CHECK(ledger.allocate(96, "outputs") != nullptr);
}

TEST_CASE("ledger: a device's refusal leaves nothing held and no peak", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  constexpr std::size_t kMoreThanAnyMachine = std::size_t{1} << 50;
  MemoryLedger ledger(*device, std::size_t{1} << 60);
  CHECK_THROWS_AS(ledger.allocate(kMoreThanAnyMachine, "inputs"), OutOfMemory);
  CHECK(ledger.held_bytes() == 0);
  CHECK(ledger.peak_bytes() == 0);
}

TEST_CASE("ledger: allocations outlive the ledger object", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  std::shared_ptr<void> memory;
  {
    MemoryLedger ledger(*device, 4096);
    memory = ledger.allocate(64, "inputs");
  }
  static_cast<char*>(memory.get())[63] = 7;
  CHECK(static_cast<char*>(memory.get())[63] == 7);
}

TEST_CASE("ledger: threads that allocate together lose no byte", "[measure][ledger]") {
  const auto device = make_cpu_device(1);
  MemoryLedger ledger(*device, std::size_t{1} << 30);
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kMostBytes = 200;
  std::vector<std::thread> threads(kThreads);
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads[t] = std::thread([&ledger, t] {
      for (std::size_t bytes = 1; bytes <= kMostBytes; ++bytes) {
        const auto kept = ledger.allocate(bytes, "role" + std::to_string(t));
        const auto shared = ledger.allocate(1, "inputs");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(ledger.held_bytes() == 0);
  CHECK(ledger.peak_bytes() <= kThreads * (kMostBytes + 1));
  CHECK(ledger.peak_by_role()["role0"] == kMostBytes);
}
