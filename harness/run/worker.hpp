// The worker process: runs rows for the supervisor, so that what kills it costs one row.
#pragma once

namespace inferometer {

// The whole of `<program> worker ...`, which the supervisor starts; not for typing. Returns the exit code.
// main hands over before reading its own command line.
int worker_main(int argc, char** argv);

}  // namespace inferometer
