#include "harness/peer/peer.hpp"

#include <algorithm>
#include <cmath>

#include "harness/measure/device.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

constexpr int kProtocol = 1;

const char* role_name(Role role) { return role == Role::output ? "output" : "input"; }

Json tensor_json(const TensorSpec& spec, const SharedBlock& block) {
  return {{"name", spec.name},   {"role", role_name(spec.role)}, {"dtype", std::string(dtype_name(spec.dtype))},
          {"shape", spec.shape}, {"bytes", spec.bytes()},        {"path", block.path()}};
}

bool is_time(double ns) { return std::isfinite(ns) && ns > 0; }

}  // namespace

void Peer::start() {
  process_ = std::make_unique<PeerProcess>(manifest_);
  Json hello;
  try {
    hello = process_->read();
  } catch (const PeerError&) {
    if (!process_->was_not_found()) throw;
    missing_ = manifest_.command.front() + " is not on PATH";
    return;
  }
  const std::string type = hello.at("type");
  if (type == "missing") {
    missing_ = text_from(hello.value("reason", Json("it does not say why")));
  } else if (type != "hello" || hello.value("protocol", Json(0)) != Json(kProtocol)) {
    throw PeerError("peer " + manifest_.name + " must begin with {\"type\": \"hello\", \"protocol\": " +
                    std::to_string(kProtocol) + "}, it said " + to_line(hello));
  } else {
    versions_ = hello.value("versions", Json::object()).get<std::map<std::string, std::string>>();
  }
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
  const std::string reason = "peer " + manifest_.name + ": " + text_from(reply.value("reason", Json(nullptr)));
  if (reply.value("out_of_memory", Json(false)) == Json(true))
    throw OutOfMemory(reason, reply.value("asked_bytes", std::size_t{0}), reply.value("free_bytes", std::size_t{0}));
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
  const std::string reason = text_from(reply.at("reason"));
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
    throw PeerError("peer " + manifest_.name + " gave no timing: " + error.what());
  }
  if (!is_time(timing.headline_ns) || !is_time(timing.isolated.median_ns) ||
      (timing.amortized && !is_time(timing.amortized->mean_ns)))
    throw PeerError("peer " + manifest_.name + " gave times that cannot be: " + to_line(reply.at("timing")));
  timing.suspect_reason = text_from(reply.value("suspect", Json(nullptr)));
  timing.suspect = !timing.suspect_reason.empty();
  return timing;
}

void Peer::require_alive() const {
  if (!process_ || process_->gone()) throw PeerError("peer " + manifest_.name + " is gone");
}

}  // namespace inferometer
