#include "harness/peer/peer.hpp"

#include <algorithm>
#include <cmath>

#include "harness/measure/device.hpp"
#include "harness/measure/stopping.hpp"
#include "harness/results/json_error_words.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

constexpr int kProtocol = 1;
constexpr double kMostRestSeconds = 10;  // as a config's

const char* role_name(Role role) { return role == Role::output ? "output" : "input"; }

Json tensor_json(const TensorSpec& spec, const SharedBlock& block) {
  return {{"name", spec.name},   {"role", role_name(spec.role)}, {"dtype", std::string(dtype_name(spec.dtype))},
          {"shape", spec.shape}, {"bytes", spec.bytes()},        {"path", block.path()}};
}

bool is_time(double ns) { return std::isfinite(ns) && ns > 0; }
bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

// Whether samples of launches can have given this, and a results file can hold it.
bool is_possible(const Timing& timing) {
  const IsolatedTiming& one = timing.isolated;
  const auto amounts = {one.p5_ns,
                        one.p95_ns,
                        one.min_ns,
                        one.mad_ns,
                        one.rest_seconds,
                        one.ci_low_ns.value_or(0),
                        one.ci_high_ns.value_or(0),
                        one.ci_half_width_ratio.value_or(0),
                        one.sm_mhz_median.value_or(0)};
  return is_time(timing.headline_ns) && is_time(one.median_ns) && one.samples > 0 &&
         std::all_of(amounts.begin(), amounts.end(), is_amount) && one.rest_seconds <= kMostRestSeconds &&
         !one.stop_reason.empty() && std::find(one.flags.begin(), one.flags.end(), "") == one.flags.end() &&
         (!timing.amortized ||
          (is_time(timing.amortized->mean_ns) && timing.amortized->launches > 0 && timing.amortized->input_sets > 0));
}

bool are_texts(const Json& json) {
  return json.is_object() && std::all_of(json.begin(), json.end(), [](const Json& value) { return value.is_string(); });
}

std::size_t bytes_at(const Json& message, const char* key) {
  const Json bytes = message.value(key, Json(nullptr));
  return bytes.is_number_unsigned() ? bytes.get<std::size_t>() : 0;
}

}  // namespace

void Peer::start() {
  process_ = std::make_unique<PeerProcess>(manifest_);
  try {
    hear_hello();
  } catch (const PeerError&) {
    process_.reset();  // the next row would take it for one that has begun
    throw;
  }
}

void Peer::hear_hello() {
  Json hello;
  try {
    hello = process_->read();
  } catch (const PeerError&) {
    if (!process_->was_not_found()) throw;
    missing_ = manifest_.command.front() + " is not on PATH, or may not be executed";
    return;
  }
  const std::string type = hello.at("type");
  if (type == "missing") {
    missing_ = text_at(hello, "reason");
    if (missing_.empty()) missing_ = "it does not say why";
    return;
  }
  const Json versions = hello.value("versions", Json::object());
  if (type != "hello" || hello.value("protocol", Json(0)) != Json(kProtocol) || !are_texts(versions))
    throw PeerError("peer " + manifest_.name + " must begin with {\"type\": \"hello\", \"protocol\": " +
                    std::to_string(kProtocol) + ", \"versions\": {NAME: TEXT}}, it said " + to_line(hello));
  versions_ = versions.get<std::map<std::string, std::string>>();
}

std::string Peer::text_at(const Json& message, const char* key) const {
  const Json text = message.value(key, Json(nullptr));
  if (!text.is_null() && !text.is_string())
    throw PeerError("peer " + manifest_.name + ": \"" + key + "\" must be a string or null, it said " +
                    to_line(message));
  return text_from(text);
}

Json Peer::ask(const Json& message, std::string_view answer) {
  require_alive();
  process_->send(message);
  Json reply = process_->read();
  const std::string type = reply.at("type");
  if (type == answer) return reply;
  if (type != "error") {
    process_.reset();  // what it says next would be taken for an answer to something else
    throw PeerError("peer " + manifest_.name + " must answer \"" + std::string(answer) + "\", it said " +
                    to_line(reply));
  }
  const std::string said = text_at(reply, "reason");
  const std::string reason = "peer " + manifest_.name + ": " + (said.empty() ? "it does not say why" : said);
  if (reply.value("out_of_memory", Json(false)) == Json(true))
    throw OutOfMemory(reason, bytes_at(reply, "asked_bytes"), bytes_at(reply, "free_bytes"));
  throw PeerError(reason);
}

std::optional<std::string> Peer::refuses(const PeerVariant& variant, const Fields& problem) {
  if (missing_.empty() && (!process_ || process_->gone())) start();
  if (!missing_.empty())
    return "peer " + manifest_.name + " is not here: " + missing_ + "; to install: " + manifest_.install;
  sets_.clear();
  launched_.reset();
  const Json reply = ask({{"type", "supports"},
                          {"operator", variant.operator_name},
                          {"variant", variant.name},
                          {"problem", fields_json(problem)}},
                         "supports");
  if (!reply.contains("reason"))
    throw PeerError("peer " + manifest_.name + " must answer with \"reason\", it said " + to_line(reply));
  const std::string reason = text_at(reply, "reason");
  return reason.empty() ? std::nullopt : std::optional(reason);
}

void* Peer::allocate(std::size_t bytes) { return blocks_.emplace_back(bytes).data(); }

void Peer::release(void* memory) noexcept {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const auto& block) { return block.data() == memory; });
  if (found != blocks_.end()) blocks_.erase(found);
}

int Peer::prepare(const PeerVariant& variant, const Fields& problem, const std::vector<TensorSpec>& specs) {
  const int set = sets_.empty() ? 0 : sets_.back() + 1;
  Json tensors = Json::array();
  auto block = std::prev(blocks_.end(), static_cast<std::ptrdiff_t>(specs.size()));
  for (const TensorSpec& spec : specs) tensors.push_back(tensor_json(spec, *block++));
  ask({{"type", "prepare"},
       {"set", set},
       {"operator", variant.operator_name},
       {"variant", variant.name},
       {"problem", fields_json(problem)},
       {"tensors", std::move(tensors)}},
      "prepared");
  sets_.push_back(set);
  return set;
}

void Peer::forget(int set) noexcept {
  std::erase(sets_, set);
  try {
    if (process_ && !process_->gone()) ask({{"type", "forget"}, {"set", set}}, "forgotten");
  } catch (const std::exception& error) {  // the next message will find it gone
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void Peer::launch(int set) {
  ask({{"type", "launch"}, {"set", set}}, "launched");
  launched_ = set;
}

void Peer::read_back() {
  if (!launched_) return;
  ask({{"type", "read_back"}, {"set", *launched_}}, "read");
  launched_.reset();
}

Timing Peer::time(const MeasureConfig& config) {
  const Json reply = ask({{"type", "time"}, {"sets", sets_}, {"measure", measure_json(config)}}, "timed");
  Timing timing;
  try {
    timing = timing_from_json(reply.at("timing"));
  } catch (const std::exception& error) {
    throw PeerError("peer " + manifest_.name + " gave no timing: " + without_json_tags(error.what()));
  }
  if (!is_possible(timing))
    throw PeerError("peer " + manifest_.name + " gave times that cannot be: " + to_line(reply.at("timing")));
  choose_headline(timing);
  timing.suspect_reason = text_at(reply, "suspect");
  timing.suspect = !timing.suspect_reason.empty();
  return timing;
}

void Peer::require_alive() const {
  if (!process_ || process_->gone()) throw PeerError("peer " + manifest_.name + " is gone");
}

}  // namespace inferometer
