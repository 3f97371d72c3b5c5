#pragma once
// Ends this process when its parent is gone.

#include <atomic>
#include <memory>

namespace tengen::transport {

// Watches a pipe or a socket in a separate thread. This thread needs no other thread of the
// process, so it works even if another thread holds the interpreter's lock.
//
// When the other end is closed, the process has `grace_s` seconds to exit on its own, and is then
// killed. Time in which it is runnable without a CPU does not count, so a busy machine does not
// shorten the grace period. The process is not killed between hold() and release().
//
// Any thread may call; nothing blocks. A fork of the process is not watched.
class Lifeline {
 public:
  // The caller owns the descriptor and keeps it open. Throws Error if no thread can be started.
  Lifeline(int descriptor, double grace_s);

  // Between the two calls the process is not killed; then the grace period restarts. They nest.
  void hold() { ++*holds_; }
  void release() { --*holds_; }

 private:
  // Shared with the thread, which outlives this object.
  std::shared_ptr<std::atomic<int>> holds_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tengen::transport
