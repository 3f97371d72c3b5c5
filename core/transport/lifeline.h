#pragma once
// Ends this process when its parent process has ended.

#include <atomic>
#include <memory>

namespace tengen::transport {

// Watches a pipe or a socket in a separate thread, which does not depend on other threads. So it
// works even if another thread holds the lock of the Python interpreter.
//
// When the other end is closed, the process has `grace_s` seconds to exit, and is then killed. Time
// in which the process is runnable without a CPU does not count, so a busy machine does not shorten
// the grace period. The process is not killed between hold() and release().
//
// Thread-safe; no call blocks. A forked process is not watched.
class Lifeline {
 public:
  // The caller owns `descriptor` and keeps it open. Throws Error if no thread can be started.
  Lifeline(int descriptor, double grace_s);

  // The process is not killed between hold() and release(), which may nest. Afterwards the grace
  // period starts again.
  void hold() { ++*holds_; }
  void release() { --*holds_; }

 private:
  // The number of hold() calls without a release(). Shared with the thread, which outlives this.
  std::shared_ptr<std::atomic<int>> holds_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tengen::transport
