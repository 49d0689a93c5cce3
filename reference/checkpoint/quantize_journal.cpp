#include "reference/checkpoint/quantize_journal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/checkpoint_error.hpp"

namespace inferometer {
namespace {

constexpr const char* kSchema = "inferometer.quantize_journal/1";
constexpr std::size_t kMaxJournalBytes = std::size_t{256} << 20;

}  // namespace

QuantizeJournal::~QuantizeJournal() {
  if (fd_ >= 0) close(fd_);
}

bool QuantizeJournal::exists() const {
  std::error_code unknown;  // opening it says what is wrong
  return std::filesystem::exists(path_, unknown);
}

void QuantizeJournal::begin(const std::string& fingerprint) {
  open_at(0);
  write_line({{"schema", kSchema}, {"fingerprint", fingerprint}});
}

std::map<std::size_t, Json> QuantizeJournal::go_on(const std::string& fingerprint) {
  const std::string text = read_text_file(path_, kMaxJournalBytes, "journal");
  std::map<std::size_t, Json> groups;
  std::size_t end = 0;  // of the last whole line
  for (std::size_t newline = text.find('\n'); newline != std::string::npos; newline = text.find('\n', end)) {
    const Json line = read_json(text.substr(end, newline - end), path_);
    const auto is_unsigned = [&](const char* key) { return line.contains(key) && line[key].is_number_unsigned(); };
    if (!line.is_object() || (end == 0 ? line.value("schema", Json()) != kSchema : !is_unsigned("group")))
      throw ConfigError(path_ + ": is no journal of a quantisation; remove it, or choose another folder");
    if (end == 0 && line.value("fingerprint", Json()) != fingerprint)
      throw ConfigError(
          path_ +
          ": is of another model, calibration or settings; give those, or remove it and start without --resume");
    if (end != 0) groups[line["group"].get<std::size_t>()] = line.value("result", Json());
    end = newline + 1;
  }
  if (end == 0) throw ConfigError(path_ + ": broke off in its first line; remove it and start without --resume");
  open_at(end);
  return groups;
}

void QuantizeJournal::append(std::size_t group, const Json& result) {
  write_line({{"group", group}, {"result", result}});
}

void QuantizeJournal::remove() { unlink(path_.c_str()); }

void QuantizeJournal::open_at(std::size_t bytes) {
  constexpr mode_t kMode = 0666;  // less the umask, as any file
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, kMode);
  if (fd_ < 0) throw_io_error(path_, "cannot be written", errno);
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) throw_io_error(path_, "cannot be cut", errno);
}

void QuantizeJournal::write_line(const Json& json) const {
  const std::string line = to_line(json) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = ::write(fd_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(path_, "cannot be written", errno);
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (fdatasync(fd_) != 0) throw_io_error(path_, "cannot be flushed", errno);
}

}  // namespace inferometer
