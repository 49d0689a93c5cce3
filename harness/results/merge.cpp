#include "harness/results/merge.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "harness/results/results_file.hpp"

namespace inferometer {
namespace {

void require_results(const MergePart& part) {
  const Json& json = part.results;
  const bool is_results = json.is_object() && json.contains("schema") && json.at("schema") == kResultsSchema &&
                          json.contains("rows") && json.at("rows").is_array() && json.contains("environment") &&
                          json.at("environment").is_object();
  if (!is_results)
    throw MergeError(part.name + ": is no results file (its \"schema\" must be \"" + std::string(kResultsSchema) +
                     "\")");
}

const Json& environment_of(const MergePart& part) { return part.results.at("environment"); }

Json without(Json json, std::initializer_list<const char*> keys) {
  if (json.is_object())
    for (const char* key : keys) json.erase(key);
  return json;
}

// The first field in which two objects differ, with both values.
std::string difference(const Json& one, const Json& other) {
  for (const auto& [key, value] : one.items())
    if (!other.contains(key) || other.at(key) != value)
      return key + " is " + value.dump() + " and " + (other.contains(key) ? other.at(key).dump() : "missing");
  return "the one lacks what the other has";
}

class Merging {
 public:
  Merging(const std::vector<MergePart>& parts, const MergeAllowed& allowed) : parts_(parts), allowed_(allowed) {}

  Merged run() {
    if (parts_.empty()) throw MergeError("there is no part");
    for (const MergePart& part : parts_) require_results(part);
    compare_parts();
    collect_rows();
    refuse();
    Merged merged;
    merged.results = joined();
    for (const std::string& id : order_)
      if (!rows_.contains(id)) merged.missing.push_back(id);
    return merged;
  }

 private:
  struct Row {
    const Json* json;
    const MergePart* part;
  };

  void compare_parts() {
    for (const MergePart& part : parts_) {
      const MergePart& first = parts_.front();
      if (!allowed_.config) {
        const auto config = [](const MergePart& of) {
          return Json{{"config_sha256", of.results.at("config_sha256")}, {"seed", of.results.at("seed")}};
        };
        compare("config", first, part, config(first), config(part));
      }
      if (!allowed_.binary) {
        const auto program = [](const MergePart& of) { return without(environment_of(of).at("program"), {"argv"}); };
        compare("binary", first, part, program(first), program(part));
      }
      if (!allowed_.devices) compare_devices(first, part);
    }
  }

  void compare_devices(const MergePart& first, const MergePart& part) {
    const auto host = [](const MergePart& of) {
      const Json& json = environment_of(of).at("host");
      return Json{{"cpu_model", json.at("cpu_model")}, {"threads_used", json.at("threads_used")}};
    };
    compare("devices", first, part, host(first), host(part));
    // A part without GPU rows opened none.
    const auto gpu = [](const MergePart& of) { return without(environment_of(of).at("gpu"), {"uuid"}); };
    const Json now = gpu(part);
    if (now.is_null()) return;
    if (gpu_part_ == nullptr) gpu_part_ = &part;
    compare("devices", *gpu_part_, part, gpu(*gpu_part_), now);
  }

  void compare(const char* what, const MergePart& first, const MergePart& part, const Json& one, const Json& other) {
    if (one == other) return;
    reasons_.push_back(first.name + " and " + part.name + " differ in " + what + ": " + difference(one, other) +
                       " (--allow " + what + " merges them all the same)");
  }

  void collect_rows() {
    std::unordered_set<std::string> known;
    const auto add_to_order = [&](const std::string& id) {
      if (known.insert(id).second) order_.push_back(id);
    };
    for (const MergePart& part : parts_)
      if (const auto shard = part.results.find("shard"); shard != part.results.end())
        for (const Json& id : shard->at("sweep_rows")) add_to_order(text_from(id));
    for (const MergePart& part : parts_) {
      for (const Json& row : part.results.at("rows")) {
        const std::string id = text_from(row.at("id"));
        add_to_order(id);
        const auto [found, is_new] = rows_.try_emplace(id, Row{.json = &row, .part = &part});
        if (is_new) continue;
        if (!allowed_.duplicates)
          reasons_.push_back("row " + id + " is in " + found->second.part->name + " and in " + part.name +
                             " (--allow duplicates takes the last)");
        found->second = {.json = &row, .part = &part};
      }
    }
  }

  void refuse() const {
    constexpr std::size_t kMostReasons = 20;
    std::string text;
    for (std::size_t i = 0; i < std::min(reasons_.size(), kMostReasons); ++i)
      text += (text.empty() ? "" : "\n") + reasons_[i];
    if (reasons_.size() > kMostReasons) text += "\nand " + std::to_string(reasons_.size() - kMostReasons) + " more";
    if (!text.empty()) throw MergeError(text);
  }

  Json joined() const {
    const auto has_gpu = [](const MergePart& part) { return !environment_of(part).at("gpu").is_null(); };
    const auto with_gpu = std::find_if(parts_.begin(), parts_.end(), has_gpu);
    Json results = without((with_gpu == parts_.end() ? parts_.front() : *with_gpu).results, {"rows", "shard", "parts"});
    Json parts = Json::array();
    Json& noise = results["environment"]["noise"]["repeat_ratio"];
    for (const MergePart& part : parts_) {
      const Json& from = part.results;
      if (from.at("started_at") < results["started_at"]) results["started_at"] = from.at("started_at");
      if (from.at("finished_at") > results["finished_at"]) results["finished_at"] = from.at("finished_at");
      const Json& ratio = environment_of(part).at("noise").at("repeat_ratio");
      if (ratio.is_number() && (!noise.is_number() || ratio > noise)) noise = ratio;
      if (const auto earlier = from.find("parts"); earlier != from.end() && earlier->is_array()) {
        parts.insert(parts.end(), earlier->begin(), earlier->end());  // it was merged itself
        continue;
      }
      parts.push_back({{"file", part.name},
                       {"started_at", from.at("started_at")},
                       {"finished_at", from.at("finished_at")},
                       {"rows", from.at("rows").size()},
                       {"environment", from.at("environment")}});
    }
    Json rows = Json::array();
    for (const std::string& id : order_)
      if (const auto found = rows_.find(id); found != rows_.end()) rows.push_back(*found->second.json);
    results["parts"] = std::move(parts);
    results["rows"] = std::move(rows);
    return results;
  }

  const std::vector<MergePart>& parts_;
  const MergeAllowed& allowed_;
  const MergePart* gpu_part_ = nullptr;  // the first with a GPU
  std::vector<std::string> order_;       // of ids
  std::unordered_map<std::string, Row> rows_;
  std::vector<std::string> reasons_;
};

}  // namespace

Merged merge_results(const std::vector<MergePart>& parts, const MergeAllowed& allowed) {
  return Merging(parts, allowed).run();
}

}  // namespace inferometer
