#include "harness/run/journal.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "harness/results/json_error_words.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

constexpr const char* kSchema = "inferometer.journal/1";
constexpr std::string_view kFirstBytes = R"({"schema":"inferometer.journal/)";

Json header_json(const JournalHeader& header) {
  return {{"schema", kSchema},
          {"config_sha256", header.config_sha256},
          {"binary_sha256", header.binary_sha256},
          {"device", header.device},
          {"driver", header.driver},
          {"seed", header.seed},
          {"started_at", header.started_at},
          {"devices", device_report_json(header.devices)}};
}

JournalHeader header_from(const Json& json) {
  return {.config_sha256 = json.at("config_sha256"),
          .binary_sha256 = json.at("binary_sha256"),
          .device = json.at("device"),
          .driver = json.at("driver"),
          .seed = whole_from<std::uint64_t>(json.at("seed")),
          .started_at = json.at("started_at"),
          .devices = device_report_from_json(json.at("devices"))};
}

bool is_current_file(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

std::string error_text() { return std::strerror(errno); }

}  // namespace

std::string difference(const JournalHeader& now, const JournalHeader& journal) {
  std::string text;
  const auto compare = [&](const char* name, const std::string& ours, const std::string& theirs) {
    if (ours == theirs) return;
    text += std::string(text.empty() ? "" : "; ") + name + " is " + (ours.empty() ? "none" : ours) +
            ", the journal's is " + (theirs.empty() ? "none" : theirs);
  };
  compare("config_sha256", now.config_sha256, journal.config_sha256);
  compare("binary_sha256", now.binary_sha256, journal.binary_sha256);
  compare("device", now.device, journal.device);
  compare("driver", now.driver, journal.driver);
  compare("seed", std::to_string(now.seed), std::to_string(journal.seed));
  compare("threads_used", std::to_string(now.devices.threads_used), std::to_string(journal.devices.threads_used));
  return text;
}

std::optional<JournalContent> parse_journal(const std::string& text, const std::string& path) {
  JournalContent content;
  bool has_header = false;
  std::size_t line_number = 0;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    ++line_number;
    try {
      const Json json = Json::parse(text.substr(begin, end - begin));
      if (!has_header) {
        if (json.at("schema") != kSchema) throw std::runtime_error("unknown schema " + json.at("schema").dump());
        content.header = header_from(json);
        has_header = true;
      } else {
        content.records.push_back(record_from_json(json));
      }
    } catch (const std::exception& error) {
      if (end + 1 == text.size() && has_header) break;  // a machine that lost power may leave zeros in the last line
      throw OutputError(path + ":" + std::to_string(line_number) + ": not a journal of this program (" +
                        without_json_tags(error.what()) + "); move it away, or start over without --resume");
    }
    content.bytes = end + 1;
  }
  if (!has_header) return std::nullopt;
  return content;
}

Journal::Journal(std::string path) : path_(std::move(path)) {
  while (true) {
    file_ = FileDescriptor(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (file_.get() < 0) throw OutputError("cannot write " + path_ + ": " + error_text());
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw OutputError(path_ + ": another run is writing this file; give it another name with -o");
      throw OutputError("cannot lock " + path_ + ": " + error_text());
    }
    if (is_current_file(file_.get(), path_)) break;  // else a run that ended just now removed what we opened
  }
  struct stat status {};
  if (fstat(file_.get(), &status) != 0) throw OutputError("cannot read " + path_ + ": " + error_text());
  bytes_ = static_cast<std::size_t>(status.st_size);
  std::string first(std::min(bytes_, kFirstBytes.size()), '\0');
  if (pread(file_.get(), first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()) ||
      !kFirstBytes.starts_with(first))
    throw OutputError(path_ + " exists and is not a journal of this program; move it away, or choose another -o");
}

Journal::~Journal() {
  if (bytes_ == 0 && file_.get() >= 0) unlink(path_.c_str());
}

std::optional<JournalContent> Journal::read() const {
  std::ifstream file(path_, std::ios::binary);
  return parse_journal({std::istreambuf_iterator<char>(file), {}}, path_);
}

void Journal::begin(const JournalHeader& header) {
  truncate(0);
  write_line(to_line(header_json(header)));
}

void Journal::continue_after(const JournalContent& content) { truncate(content.bytes); }

void Journal::append(const Record& record) { write_line(to_line(record_json(record))); }

void Journal::remove() {
  unlink(path_.c_str());
  file_.reset();
}

void Journal::truncate(std::size_t bytes) {
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0 ||
      lseek(file_.get(), static_cast<off_t>(bytes), SEEK_SET) < 0)
    throw JournalError("cannot write " + path_ + ": " + error_text());
  bytes_ = bytes;
}

void Journal::write_line(const std::string& line) {
  const std::string whole = line + "\n";
  if (!write_all(file_.get(), whole) || fdatasync(file_.get()) != 0) {
    const std::string why = error_text();
    truncate(bytes_);  // half a line would be left out when read, but the space it takes is needed elsewhere
    throw JournalError("cannot write " + path_ + ": " + why);
  }
  bytes_ += whole.size();
}

}  // namespace inferometer
