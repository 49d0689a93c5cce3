#include "harness/claims/claims_file.hpp"

#include <algorithm>
#include <set>

#include "harness/claims/claim_part_reader.hpp"
#include "harness/sweep/cursor.hpp"

namespace inferometer {
namespace {

constexpr const char* kSchema = "inferometer.claims/1";
constexpr std::size_t kMaxClaimsBytes = std::size_t{16} << 20;

std::vector<std::string> list_of_words(const Cursor& object, const std::string& key) {
  std::vector<std::string> list;
  if (const auto member = object.find(key))
    for (const Cursor& item : member->items(1)) list.push_back(words_from(item));
  return list;
}

bool flag(const Cursor& object, const std::string& key) {
  const auto member = object.find(key);
  if (!member) return false;
  if (!member->json().is_boolean()) member->refuse("true or false");
  return member->json().get<bool>();
}

ClaimRun read_run(const Cursor& value) {
  value.allow_keys({"experiment", "variants", "filter", "set", "gpu"});
  ClaimRun run;
  run.experiment = words_from(value.required("experiment"));
  run.options.variants = list_of_words(value, "variants");
  run.options.filter = optional_words(value, "filter");
  run.options.set = list_of_words(value, "set");
  run.needs_gpu = flag(value, "gpu");
  return run;
}

// It names files of results.
std::string read_id(const Cursor& value) {
  std::string id = value.string();
  const bool safe = std::all_of(id.begin(), id.end(),
                                [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  if (id.empty() || !safe) value.refuse("one or more of a-z, 0-9 and '_'");
  return id;
}

Claim read_claim(const Cursor& value) {
  value.allow_keys({"id", "claim", "source", "conditions", "where", "parts", "runs"});
  Claim claim{.id = read_id(value.required("id")),
              .text = words_from(value.required("claim")),
              .source = words_from(value.required("source")),
              .conditions = words_from(value.required("conditions")),
              .parts = {},
              .runs = {}};
  bool decided = false;
  for (const Cursor& item : value.required("parts").items(1)) {
    claim.parts.push_back(read_claim_part(item, value));
    decided = decided || claim.parts.back().role == PartRole::decides;
  }
  if (!decided) value.required("parts").fail("needs a part whose role is 'decides'");
  for (const Cursor& item : value.required("runs").items(0)) claim.runs.push_back(read_run(item));
  return claim;
}

}  // namespace

std::vector<Claim> parse_claims(const std::string& text, const std::string& path) {
  const Json document = read_json(text, path);
  const Cursor root(path, document);
  root.allow_keys({"schema", "claims"});
  if (const Cursor schema = root.required("schema"); schema.string() != kSchema)
    schema.refuse("'" + std::string(kSchema) + "'");
  std::vector<Claim> claims;
  std::set<std::string> ids;
  for (const Cursor& item : root.required("claims").items(1)) {
    claims.push_back(read_claim(item));
    if (!ids.insert(claims.back().id).second)
      item.required("id").fail("another claim is called '" + claims.back().id + "' too");
  }
  return claims;
}

std::vector<Claim> load_claims(const std::string& path) {
  return parse_claims(read_text_file(path, kMaxClaimsBytes, "list of claims"), path);
}

}  // namespace inferometer
