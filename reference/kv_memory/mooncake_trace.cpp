// Requests from JSON lines as the Mooncake traces have them; request.hpp names the members.
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/results/json.hpp"
#include "reference/kv_memory/trace_file.hpp"

namespace inferometer {
namespace {

class MooncakeTrace : public TraceFile {
 public:
  using TraceFile::TraceFile;

 private:
  void read_row(std::string_view line, KvRequest& request) override {
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) refuse("a JSON object", line);
    request.prompt = count(row, "input_length");
    request.output = count(row, "output_length");
    if (needs_arrivals()) request.arrival_ms = static_cast<double>(count(row, "timestamp", kLargest));
    const auto ids = row.find("hash_ids");
    if (ids == row.end() || !ids->is_array()) refuse("hash_ids: an array", line);
    const std::int64_t blocks = (request.prompt + kHashBlockTokens - 1) / kHashBlockTokens;
    if (static_cast<std::int64_t>(ids->size()) != blocks)
      refuse("hash_ids: " + std::to_string(blocks) + " ids, one for every " + std::to_string(kHashBlockTokens) +
                 " tokens of " + std::to_string(request.prompt),
             std::to_string(ids->size()) + " ids");
    request.hash_ids.reserve(ids->size());
    for (const Json& id : *ids) request.hash_ids.push_back(read_count(id.dump(), "hash_ids", kLargest));
  }

  static constexpr std::int64_t kLargest = std::int64_t{1} << 53;  // integers that every JSON reader keeps

  std::int64_t count(const Json& row, const char* name, std::int64_t largest = kLongest) const {
    const auto member = row.find(name);
    if (member == row.end()) refuse(std::string("a member ") + name, row.dump());
    return read_count(member->dump(), name, largest);
  }
};

}  // namespace

std::unique_ptr<RequestSource> open_mooncake_trace(const std::string& path, bool needs_arrivals) {
  return std::make_unique<MooncakeTrace>(path, needs_arrivals);
}

}  // namespace inferometer
