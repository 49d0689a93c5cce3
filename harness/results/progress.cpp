#include "harness/results/progress.hpp"

#include <algorithm>
#include <cmath>

#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

constexpr int kBarWidth = 20;

std::string counter(int row, int rows) { return "[" + std::to_string(row) + "/" + std::to_string(rows) + "]"; }

}  // namespace

Progress::Progress(std::FILE* stream, int rows, bool quiet)
    : stream_(stream), rows_(rows), quiet_(quiet), bar_(!quiet && is_terminal(stream)), colour_(shows_colour(stream)) {}

Progress::~Progress() { wipe(); }

void Progress::row_started(const std::string& row) {
  row_ = row;
  phase_.clear();
  draw();
}

void Progress::phase(std::string_view name) {
  phase_ = name;
  draw();
}

void Progress::tick() { draw(); }

void Progress::row_finished(const Record& record) {
  ++finished_;
  if (!quiet_ && (!bar_ || !is_success(record.status))) {
    wipe();
    std::string line =
        counter(finished_, rows_) + " " + row_ + " " + coloured(status_name(record.status), record.status, colour_);
    if (record.timing) line += " " + shown_time(record.timing->headline_ns);
    if (!record.reason.empty()) line += ": " + record.reason;
    std::fprintf(stream_, "%s\n", line.c_str());
    std::fflush(stream_);
  }
  draw();
}

void Progress::message(const std::string& line) {
  wipe();
  std::fprintf(stream_, "%s\n", line.c_str());
  std::fflush(stream_);
  draw();
}

std::string Progress::time_left() const {
  if (finished_ == 0) return "";
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const double seconds = std::ceil(elapsed.count() / finished_ * (rows_ - finished_));
  constexpr double kMinute = 60;
  return seconds < 2 * kMinute ? std::to_string(static_cast<int>(seconds)) + " s left"
                               : std::to_string(static_cast<int>(std::ceil(seconds / kMinute))) + " min left";
}

void Progress::draw() {
  if (!bar_ || finished_ == rows_ || row_.empty()) return;
  const auto full = static_cast<std::size_t>(kBarWidth * finished_ / std::max(rows_, 1));
  const std::string left = time_left();
  std::string line = "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "] " +
                     std::to_string(finished_ + 1) + "/" + std::to_string(rows_) + " ";
  for (const std::string& part : {left, phase_})
    if (!part.empty()) line += part + "  ";
  line += row_;  // last: it is the part that a narrow terminal may cut
  const auto columns = static_cast<std::size_t>(std::max(terminal_columns(stream_) - 1, 1));  // the last one would wrap
  std::fprintf(stream_, "\r%s\x1b[K", shortened(line, columns).c_str());
  std::fflush(stream_);
}

void Progress::wipe() {
  if (!bar_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
}

}  // namespace inferometer
