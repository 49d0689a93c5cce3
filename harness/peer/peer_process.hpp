// The process of an adapter: started, asked, ended.
#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>

#include "harness/peer/manifest.hpp"
#include "harness/results/json.hpp"
#include "harness/run/lines.hpp"

namespace inferometer {

// What a peer could not do, or that it is gone; the message names it.
class PeerError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Its standard input and output are a socket that carries one JSON object a line; what else it prints on standard
// output goes to standard error. It dies with the thread that started it.
class PeerProcess {
 public:
  explicit PeerProcess(const PeerManifest& manifest);  // throws std::system_error when no process can be started
  ~PeerProcess();                                      // closes the socket, waits a moment, kills
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  Json read();  // the next message; throws PeerError when the process ends instead
  void send(const Json& message);
  bool gone() const { return pid_ < 0; }
  bool was_not_found() const { return not_found_; }  // there is no such program; known once it is gone

 private:
  std::string end();  // how it ended

  std::string name_;
  pid_t pid_ = -1;
  bool not_found_ = false;
  FileDescriptor socket_;
  LineReader lines_;
};

}  // namespace inferometer
