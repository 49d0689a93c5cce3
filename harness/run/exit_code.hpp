// What a command that runs rows ends with.
#pragma once

namespace inferometer {

// 130 is what shells report of a program that Ctrl-C ended.
enum ExitCode { kAllWell = 0, kRowFailed = 1, kWrongUse = 2, kInterrupted = 130 };

}  // namespace inferometer
