// The pause before a measurement.
#pragma once

#include <chrono>
#include <thread>

namespace inferometer {

// Leaves an idle device without work, so that what is measured next begins at the temperature and the power of a rested
// one, whatever ran before. A long measurement still ends at the power limit: an H200 reaches it after about 10 ms of
// large matrix products.
inline void rest(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace inferometer
