#include "harness/run/worker.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "harness/run/exit_code.hpp"
#include "harness/run/lines.hpp"
#include "harness/run/protocol.hpp"

namespace inferometer {
namespace {

std::optional<Json> receive(LineReader& reader) {
  while (true) {
    if (const auto line = reader.next()) return Json::parse(*line);
    if (!reader.fill()) return std::nullopt;  // the supervisor is gone
  }
}

void send_message(int fd, const Json& message) {
  // Nobody is left to measure for. No destructors: a lost device could hang in them.
  if (!write_all(fd, to_line(message) + "\n")) std::_Exit(EXIT_FAILURE);
}

}  // namespace

int worker_main(int argc, char** argv) {
  int fd = -1;
  const std::string_view number = argc == 3 ? argv[2] : "";
  if (const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), fd);
      error != std::errc() || end != number.data() + number.size()) {
    std::fputs("inferometer worker: started by `inferometer run`, not by hand; see `inferometer run --help`\n", stderr);
    return kWrongUse;
  }
  try {
    LineReader reader(fd);
    const auto start = receive(reader);
    if (!start) return EXIT_SUCCESS;
    Session session(start_from(*start));
    send_message(fd, hello_message(session.report()));
    while (const auto message = receive(reader)) {
      if (asks_to_measure_host(*message)) {
        session.measure_host();
        send_message(fd, hello_message(session.report()));
        continue;
      }
      const RowOutcome outcome =
          session.run(row_from(*message), [&](std::string_view phase) { send_message(fd, phase_message(phase)); });
      send_message(fd, result_message(outcome));
      if (outcome.device_lost || outcome.profiled) std::_Exit(EXIT_FAILURE);  // see send_message
    }
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace inferometer
