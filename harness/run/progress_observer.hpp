// What workers report, as progress on standard error; several may report at once.
#pragma once

#include <mutex>
#include <string>

#include "harness/results/progress.hpp"
#include "harness/run/row_executor.hpp"

namespace inferometer {

class ProgressObserver : public RunObserver {
 public:
  explicit ProgressObserver(Progress& progress) : progress_(progress) {}

  void phase(std::string_view name) override {
    const std::lock_guard lock(mutex_);
    progress_.phase(name);
  }

  void output(const std::string& line) override {
    constexpr int kMostLines = 20;
    const std::lock_guard lock(mutex_);
    if (++lines_ <= kMostLines) progress_.message("worker: " + line);
    if (lines_ == kMostLines) progress_.message("worker: what else this row prints is not shown");
  }

  void replaced(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    progress_.message(why + "; another takes its place");
  }

  void tick() override {
    const std::lock_guard lock(mutex_);
    progress_.tick();
  }

  void row_started(const std::string& row) {
    const std::lock_guard lock(mutex_);
    lines_ = 0;
    progress_.row_started(row);
  }

  // `row` as at its start: another may have begun since.
  void row_finished(const std::string& row, const Record& record) {
    const std::lock_guard lock(mutex_);
    progress_.row_started(row);
    progress_.row_finished(record);
  }

 private:
  std::mutex mutex_;
  int lines_ = 0;  // printed by workers since a row began
  Progress& progress_;
};

}  // namespace inferometer
