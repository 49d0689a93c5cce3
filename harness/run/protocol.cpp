#include "harness/run/protocol.hpp"

#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

std::optional<std::size_t> optional_bytes(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(whole_from<std::size_t>(json));
}

}  // namespace

Json start_message(const SessionConfig& config) {
  const Limits& limits = config.row.limits;
  return {{"type", "start"},
          {"seed", config.row.seed},
          {"measure", measure_json(config.row.measure)},
          {"row_seconds", limits.row_seconds},
          {"host_bytes", or_null(limits.host_bytes)},
          {"device_bytes", or_null(limits.device_bytes)},
          {"gpu_ordinal", config.gpu_ordinal},
          {"cpu_rows", config.cpu_rows},
          {"gpu_rows", config.gpu_rows},
          {"known", config.known ? device_report_json(*config.known) : Json(nullptr)}};
}

SessionConfig start_from(const Json& message) {
  SessionConfig config;
  config.row.seed = whole_from<std::uint64_t>(message.at("seed"));
  config.row.measure = measure_from_json(message.at("measure"));
  config.row.limits.row_seconds = message.at("row_seconds");
  config.row.limits.host_bytes = optional_bytes(message.at("host_bytes"));
  config.row.limits.device_bytes = optional_bytes(message.at("device_bytes"));
  config.gpu_ordinal = whole_from<int>(message.at("gpu_ordinal"));
  config.cpu_rows = message.at("cpu_rows");
  config.gpu_rows = message.at("gpu_rows");
  if (const Json& known = message.at("known"); !known.is_null()) config.known = device_report_from_json(known);
  return config;
}

Json measure_host_message() { return {{"type", "measure_host"}}; }

bool asks_to_measure_host(const Json& message) { return message.at("type") == "measure_host"; }

Json row_message(const SweepRow& row) {
  return {{"type", "row"},
          {"id", row.id},
          {"operator", row.operator_name},
          {"variant", row.variant},
          {"problem", fields_json(row.problem)}};
}

SweepRow row_from(const Json& message) {
  SweepRow row;
  row.id = message.at("id");
  row.operator_name = message.at("operator");
  row.variant = message.at("variant");
  row.problem = fields_from_json(message.at("problem"));
  return row;
}

Json hello_message(const DeviceReport& report) { return {{"type", "hello"}, {"devices", device_report_json(report)}}; }

Json phase_message(std::string_view phase) { return {{"type", "phase"}, {"name", phase}}; }

Json result_message(const RowOutcome& outcome) {
  return {{"type", "result"},
          {"record", record_json(outcome.record)},
          {"device_lost", outcome.device_lost},
          {"profiled", outcome.profiled}};
}

RowOutcome result_from(const Json& message) {
  return {.record = record_from_json(message.at("record")),
          .device_lost = message.at("device_lost"),
          .profiled = message.at("profiled")};
}

}  // namespace inferometer
