#pragma once
// Guards that release and acquire the GIL, also while the interpreter is finalized.
//
// Before Python 3.14, a thread other than the main thread that takes the GIL during finalization is
// ended with pthread_exit. That unwinds the stack, and a destructor or a noexcept function on it
// calls std::terminate, so that a process whose work is done ends with SIGABRT. With these guards
// such a thread blocks instead, until the process exits, as in Python 3.14.

#include <nanobind/nanobind.h>

#include <chrono>
#include <thread>

namespace tengen {

namespace gil_detail {

// Calls `take`, which takes the GIL. If that ends the thread, blocks forever.
template <typename Take>
auto or_block(Take take) noexcept {
  try {
    return take();
  } catch (...) {
    // If this handler returned, the unwinding would reach a noexcept function and end the process.
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

}  // namespace gil_detail

// Releases the GIL in its scope.
class GilReleased {
 public:
  GilReleased() noexcept : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    gil_detail::or_block([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

// Holds the GIL in its scope. Any thread may use it, also one that holds the GIL already.
class GilHeld {
 public:
  GilHeld() noexcept : state_(gil_detail::or_block([] { return PyGILState_Ensure(); })) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

// The call policy of a bound function that runs without the GIL.
using WithoutGil = nanobind::call_guard<GilReleased>;

}  // namespace tengen
