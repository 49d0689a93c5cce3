// Whatever bytes a config, a journal or a results file holds: it is read, or refused with a sentence. libFuzzer looks
// for bytes for which that fails, or that make a reader crash. Which reader: --reader=config, journal or results.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "harness/results/compare.hpp"
#include "harness/results/exports.hpp"
#include "harness/results/merge.hpp"
#include "harness/results/record_json.hpp"
#include "harness/run/journal.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"

namespace {

using namespace inferometer;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_config(const std::string& text) {
  try {
    const Sweep sweep = parse_sweep(text, "fuzz", {});
    require(!sweep.rows.empty() && sweep.config_sha256.size() == 64);
    for (const SweepRow& row : sweep.rows) require(row.id == row_id(row.operator_name, row.variant, row.problem));
  } catch (const ConfigError& error) {
    require(error.what()[0] != '\0');
  }
}

// What was read is written and read again the same.
void read_journal(const std::string& text) {
  try {
    const auto content = parse_journal(text, "fuzz");
    if (!content) return;
    require(content->bytes <= text.size());
    for (const Record& record : content->records) {
      const Json once = record_json(record);
      require(record_json(record_from_json(once)) == once);
    }
  } catch (const OutputError& error) {
    require(std::string_view(error.what()).starts_with("fuzz:"));
  }
}

// Commands take std::runtime_error and errors of the JSON library for "no results file of ours".
template <class Use>
void use(const Use& with_results) {
  try {
    with_results();
  } catch (const std::runtime_error&) {
    return;
  } catch (const Json::exception&) {
    return;
  }
}

void read_results(const std::string& text) {
  use([&] {
    const Json results = read_json(text, "fuzz");
    use([&] { require(compare_results(results, results, 0.05).threshold == 0.05); });
    use([&] { require(!merge_results({{"a", results}}, {}).results.contains("shard")); });
    for (const ExportFormat& format : export_formats()) use([&] { require(!format.write({results}).empty()); });
  });
}

void (*reader)(const std::string&) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = (*argv)[i];
    if (word == "--reader=config") reader = &read_config;
    if (word == "--reader=journal") reader = &read_journal;
    if (word == "--reader=results") reader = &read_results;
  }
  require(reader != nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  reader({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
