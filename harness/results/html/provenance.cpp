#include "harness/results/html/provenance.hpp"

#include <string_view>

#include "harness/results/html/text.hpp"
#include "harness/results/row_commands.hpp"

namespace inferometer {
namespace {

// "gpu_read_bytes_per_s" reads well enough; what it holds need not be known here.
std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "-" : value.dump();
}

std::string definitions(std::string_view heading, const Json& object) {
  if (!object.is_object() || object.empty()) return {};
  std::string text = "<div>" + html_element("h4", "", heading) + "<dl>";
  for (const auto& [name, value] : object.items())
    text += html_element("dt", "", name) + html_element("dd", "", shown(value));
  return text + "</dl></div>\n";
}

// Files of earlier versions have none.
std::string at_start_definitions(Json state) {
  if (!state.is_object()) return {};
  const Json gpu = state.value("gpu", Json(nullptr));
  state.erase("gpu");
  return definitions("Host, at the start", state) + definitions("GPU, at the start", gpu);
}

// What doctor would say of the devices of the run. Files of earlier versions have none.
std::string findings_definitions(const Json& findings) {
  Json lines = Json::object();
  for (const Json& finding : findings)
    lines[shown(finding.at("topic")) + " (" + shown(finding.at("device")) + ")"] =
        shown(finding.at("severity")) + ": " + shown(finding.at("sentence"));
  return definitions("Checks of machine and harness", lines);
}

std::string command_of(const Json& program) {
  std::string command = "./inferometer";
  for (const Json& word : program.at("argv")) command += " " + shell_quoted(shown(word));
  return command;
}

}  // namespace

std::string provenance_details(const NamedResults& source) {
  const Json& environment = source.json.at("environment");
  Json run = {{"file", source.path}};
  for (const char* name : {"started_at", "finished_at", "seed", "config_sha256"}) run[name] = source.json.at(name);
  Json program = environment.at("program");
  program.erase("argv");
  std::string text = "<p class=\"command\"><code>" + html_text(command_of(environment.at("program"))) + "</code></p>\n";
  text += "<details class=\"environment\"><summary>Machine, program, ceilings</summary>\n<div class=\"definitions\">\n";
  text += definitions("Run", run) + definitions("Program", program);
  for (const auto& [heading, name] :
       {std::pair{"Host", "host"}, {"GPU", "gpu"}, {"Ceilings, measured", "ceilings"}, {"Noise, measured", "noise"}})
    text += definitions(heading, environment.at(name));
  if (environment.contains("at_start")) text += at_start_definitions(environment.at("at_start"));
  if (environment.contains("findings")) text += findings_definitions(environment.at("findings"));
  text += "</div></details>\n<details class=\"config\"><summary>Config</summary>\n";
  constexpr int kIndent = 2;
  return text + "<pre>" + html_text(source.json.at("config").dump(kIndent)) + "</pre></details>\n";
}

}  // namespace inferometer
