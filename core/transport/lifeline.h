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

  // While held, the process is not killed. After release(), the grace period restarts. May nest.
  void hold() { ++*holds_; }
  void release() { --*holds_; }

 private:
  // The number of unreleased hold() calls. Shared with the thread, which outlives this object.
  std::shared_ptr<std::atomic<int>> holds_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tengen::transport
