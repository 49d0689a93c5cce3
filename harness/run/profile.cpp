#include "harness/run/profile.hpp"

#include "harness/peer/peer_registry.hpp"
#include "harness/run/ncu_log.hpp"
#include "harness/run/row_device.hpp"
#include "harness/run/session.hpp"

namespace inferometer {
namespace {

// A GPU row is bounded by cudaProfilerStart and Stop, with which no other range can be confused; a CPU row, which calls
// no CUDA, by its NVTX range.
std::vector<std::string> nsys_command(const SweepRow& row, const std::string& report) {
  std::vector<std::string> words{"nsys", "profile"};
  if (on_gpu(row)) {
    words.insert(words.end(), {"--trace=cuda,nvtx,cublas", "--capture-range=cudaProfilerApi"});
  } else {
    words.insert(words.end(), {"--trace=osrt,nvtx", "--sample=process-tree", "--capture-range=nvtx",
                               "--nvtx-capture=measure@inferometer"});
  }
  words.insert(words.end(), {"--capture-range-end=stop", "--force-overwrite=true", "--output=" + report});
  return words;
}

void require_seen_by_ncu(const SweepRow& row) {
  if (!on_gpu(row))
    throw ConfigError("profile: ncu looks at GPU kernels, and " + row.variant +
                      " runs on the processors: take --tool nsys");
  if (find_peer(row.operator_name, row.variant) != nullptr)
    throw ConfigError("profile: ncu looks at this process, and the kernels of " + row.variant +
                      " run in its adapter's: take --tool nsys");
}

// `how` it collects, in the measured phase alone.
std::vector<std::string> ncu_command(const SweepRow& row, const std::vector<std::string>& how) {
  require_seen_by_ncu(row);
  std::vector<std::string> words{"ncu", "--nvtx", "--nvtx-include=inferometer@measure/", "--profile-from-start=off"};
  words.insert(words.end(), how.begin(), how.end());
  return words;
}

std::vector<std::string> with(std::vector<std::string> words, const std::vector<std::string>& program) {
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

}  // namespace

Record profile_row(const Sweep& sweep, const ProfileOptions& options) {
  SessionConfig config = session_config(sweep, options.seed, options.device);
  config.row.profiled_launches = options.launches;
  config.known = DeviceReport{};  // no ceilings: measuring them is no part of the row
  Session session(config);
  return session.run(sweep.rows.front(), [](std::string_view) {}).record;
}

std::optional<ProfileTool> parse_profile_tool(std::string_view name) {
  if (name == "nsys") return ProfileTool::nsys;
  if (name == "ncu") return ProfileTool::ncu;
  return std::nullopt;
}

std::vector<std::string> tool_command(ProfileTool tool, const SweepRow& row, const std::string& report,
                                      const std::vector<std::string>& program) {
  return with(tool == ProfileTool::nsys ? nsys_command(row, report)
                                        : ncu_command(row, {"--set=full", "-f", "--export=" + report}),
              program);
}

std::vector<std::string> counting_command(const SweepRow& row, CacheMode cache, const std::string& log,
                                          const std::vector<std::string>& program) {
  const std::string caches = cache == CacheMode::cold ? "all" : "none";
  return with(ncu_command(row, {"--csv", "--page=raw", "--print-units=base", "--metrics=" + ncu_metric_names(),
                                "--cache-control=" + caches, "--clock-control=none", "--log-file=" + log}),
              program);
}

}  // namespace inferometer
