// What a quantisation has done so far, beside the file it writes: a first line that says which quantisation this is,
// then a line for each finished group of layers, on the disk before the next one starts.
#pragma once

#include <map>
#include <string>

#include "harness/results/json.hpp"

namespace inferometer {

class QuantizeJournal {
 public:
  explicit QuantizeJournal(std::string path) : path_(std::move(path)) {}
  ~QuantizeJournal();
  QuantizeJournal(const QuantizeJournal&) = delete;
  QuantizeJournal& operator=(const QuantizeJournal&) = delete;

  bool exists() const;

  // Drops what an earlier one left.
  void begin(const std::string& fingerprint);

  // Group -> what was appended for it. A last line that broke off is dropped. Throws ConfigError when the journal is of
  // another quantisation, or no journal.
  std::map<std::size_t, Json> go_on(const std::string& fingerprint);

  void append(std::size_t group, const Json& result);  // throws CheckpointError (io)
  void remove();

 private:
  void open_at(std::size_t bytes);
  void write_line(const Json& json) const;

  std::string path_;
  int fd_ = -1;
};

}  // namespace inferometer
