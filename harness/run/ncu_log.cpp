#include "harness/run/ncu_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <stdexcept>

namespace inferometer {
namespace {

enum class Kind : std::uint8_t { time, bytes, share };

struct Counter {
  std::string_view name;  // as ncu knows it
  Kind kind;
  double KernelCounters::*member;
};

constexpr std::array<Counter, 4> kCounters{{
    {"gpu__time_duration.sum", Kind::time, &KernelCounters::time_ns},
    {"dram__bytes.sum", Kind::bytes, &KernelCounters::dram_bytes},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", Kind::share,
     &KernelCounters::tensor_pipe_ratio},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", Kind::share, &KernelCounters::occupancy_ratio},
}};

// ncu's words, which differ from version to version, in nanoseconds, bytes and shares.
struct Unit {
  std::string_view name;
  Kind kind;
  double factor;
};

constexpr std::array<Unit, 14> kUnits{{{"nsecond", Kind::time, 1},
                                       {"usecond", Kind::time, 1e3},
                                       {"msecond", Kind::time, 1e6},
                                       {"second", Kind::time, 1e9},
                                       {"ns", Kind::time, 1},
                                       {"us", Kind::time, 1e3},
                                       {"ms", Kind::time, 1e6},
                                       {"s", Kind::time, 1e9},
                                       {"byte", Kind::bytes, 1},
                                       {"Kbyte", Kind::bytes, 1e3},
                                       {"Mbyte", Kind::bytes, 1e6},
                                       {"Gbyte", Kind::bytes, 1e9},
                                       {"Tbyte", Kind::bytes, 1e12},
                                       {"%", Kind::share, 0.01}}};

constexpr std::string_view kNoPermission = "ERR_NVGPUCTRPERM";

[[noreturn]] void refuse(const std::string& sentence) { throw std::runtime_error("the log of ncu: " + sentence); }

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    if (lines.back().ends_with('\r')) lines.back().remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Of what ncu says beside its table, "==PROF== Connected", the first line of this kind; empty without one.
std::string first_remark(std::string_view log, std::string_view kind) {
  for (const std::string_view line : lines_of(log))
    if (line.starts_with(kind)) return std::string(line);
  return {};
}

// One line of CSV (RFC 4180): fields in quotes may hold commas, and quotes twice.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool doubled = quoted && line.substr(i, 2) == "\"\"";
    if (doubled) ++i;
    if (line[i] == '"' && !doubled) {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  if (quoted) refuse("a line ends within quotes: " + std::string(line));
  return fields;
}

// With or without commas between thousands, which the locale decides; none for "n/a" and for what is ambiguous.
std::optional<double> number_in(std::string text) {
  const auto point = text.begin() + static_cast<std::ptrdiff_t>(std::min(text.find('.'), text.size()));
  std::ptrdiff_t digits = 0;  // since the last comma before the point
  bool grouped = false;
  for (auto c = text.begin(); c != point; ++c) {
    if (*c == ',' && (digits == 0 || digits > 3 || (grouped && digits != 3))) return std::nullopt;
    grouped = grouped || *c == ',';
    digits = *c == ',' ? 0 : digits + 1;
  }
  if (grouped && digits != 3) return std::nullopt;
  text.erase(std::remove(text.begin(), point, ','), point);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(value) && value >= 0 ? std::optional(value) : std::nullopt;
}

class Table {
 public:
  Table(std::vector<std::string> names, std::vector<std::string> units)
      : names_(std::move(names)), units_(std::move(units)) {
    if (units_.size() != names_.size() || !units_.front().empty()) refuse("the line below the names must hold units");
  }

  KernelCounters kernel(const std::vector<std::string>& fields) const {
    if (fields.size() != names_.size())
      refuse("a line has " + std::to_string(fields.size()) + " fields, the table has " + std::to_string(names_.size()));
    KernelCounters kernel;
    kernel.kernel = fields[column("Kernel Name")];
    const auto capability = number_in(fields[column("CC")]);
    if (!capability) refuse("CC must be like 9.0, it is '" + fields[column("CC")] + "'");
    kernel.sm = static_cast<int>(std::lround(10 * *capability));
    for (const Counter& counter : kCounters) {
      const std::size_t at = column(counter.name);
      const auto value = number_in(fields[at]);
      if (!value)
        refuse(std::string(counter.name) + " of " + kernel.kernel + " must be a number, it is '" + fields[at] + "'");
      kernel.*counter.member = *value * factor(at, counter.kind);
    }
    return kernel;
  }

 private:
  std::size_t column(std::string_view name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) refuse("it has no column " + std::string(name));
    return static_cast<std::size_t>(found - names_.begin());
  }

  double factor(std::size_t column, Kind kind) const {
    const auto* const found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& unit) {
      return unit.name == units_[column] && unit.kind == kind;
    });
    if (found == kUnits.end()) refuse(names_[column] + " is in '" + units_[column] + "', which is no unit of it");
    return found->factor;
  }

  std::vector<std::string> names_;
  std::vector<std::string> units_;
};

}  // namespace

std::string ncu_metric_names() {
  std::string names;
  for (const Counter& counter : kCounters) names += (names.empty() ? "" : ",") + std::string(counter.name);
  return names;
}

std::string ncu_complaint(std::string_view log) {
  if (log.find(kNoPermission) != std::string_view::npos)
    return "ncu may not read the counters of this GPU (" + std::string(kNoPermission) +
           "): run it as root, give its container --cap-add=SYS_ADMIN, or have the driver loaded with "
           "NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)";
  return first_remark(log, "==ERROR==");
}

std::vector<KernelCounters> read_ncu_log(std::string_view log) {
  std::vector<std::vector<std::string>> lines;
  for (const std::string_view line : lines_of(log))
    if (line.starts_with("\"ID\",") || (!lines.empty() && !line.empty() && !line.starts_with("==")))
      lines.push_back(fields_of(line));
  if (lines.size() < 3) {
    const std::string warning = first_remark(log, "==WARNING==");
    refuse("it counted no kernel" + (warning.empty() ? "" : "; it says " + warning));
  }
  const Table table(lines[0], lines[1]);
  std::vector<KernelCounters> kernels;
  std::transform(lines.begin() + 2, lines.end(), std::back_inserter(kernels),
                 [&](const std::vector<std::string>& fields) { return table.kernel(fields); });
  return kernels;
}

}  // namespace inferometer
