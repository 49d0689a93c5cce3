// How far a run is, on standard error: a bar on a terminal, one line a finished row elsewhere.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "harness/results/record.hpp"

namespace inferometer {

class Progress {
 public:
  // `rows` still to run. `quiet`: messages only.
  Progress(std::FILE* stream, int rows, bool quiet);
  ~Progress();  // wipes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void row_started(const std::string& row);  // "operator/variant batch=1 ..."
  void phase(std::string_view name);
  void tick();  // time goes on
  void row_finished(const Record& record);
  void message(const std::string& line);  // above the bar

 private:
  void draw();
  void wipe();
  std::string time_left() const;

  std::FILE* stream_;
  int rows_;
  bool quiet_;
  bool bar_;
  bool colour_;
  int finished_ = 0;
  std::string row_;
  std::string phase_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace inferometer
