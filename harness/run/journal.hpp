// The append-only journal of a run, FILE.jsonl: a header that says which run this is, then one record a line, on the
// disk before the next row starts. Holding it open locks it: two runs never write one file.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/results/environment.hpp"
#include "harness/results/record.hpp"
#include "harness/run/lines.hpp"

namespace inferometer {

// The run cannot begin: exit code 2.
class OutputError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A record could not be saved; the journal holds all before it. Exit code 1.
class JournalError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct JournalHeader {
  std::string config_sha256;
  std::string binary_sha256;  // of the executable
  std::string device;         // uuid and name of the GPU, or the processor's name without one
  std::string driver;
  std::uint64_t seed = 1;
  std::string started_at;
  DeviceReport devices;  // with threads_used, which a CPU row's time depends on
};

// "config_sha256 is 12ab..., the journal's 98cd..."; empty: rows of both belong together.
std::string difference(const JournalHeader& now, const JournalHeader& journal);

struct JournalContent {
  JournalHeader header;
  std::vector<Record> records;
  std::size_t bytes = 0;  // up to the end of the last whole record
};

// What the text of a journal holds; none when it is empty or broke off in its header. A last line that broke off is
// left out. Throws OutputError, which names `path`, for what is no journal.
std::optional<JournalContent> parse_journal(const std::string& text, const std::string& path);

class Journal {
 public:
  // Opens or creates `path` without changing it, and locks it. Throws OutputError.
  explicit Journal(std::string path);
  ~Journal();  // removes the file when nothing was ever written to it
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const std::string& path() const { return path_; }

  // What an earlier run left, by parse_journal.
  std::optional<JournalContent> read() const;

  void begin(const JournalHeader& header);             // drops what an earlier run left
  void continue_after(const JournalContent& content);  // drops the broken last line
  void append(const Record& record);                   // throws JournalError; so do the two above
  void remove();

 private:
  void truncate(std::size_t bytes);
  void write_line(const std::string& line);

  std::string path_;
  FileDescriptor file_;
  std::size_t bytes_ = 0;
};

}  // namespace inferometer
