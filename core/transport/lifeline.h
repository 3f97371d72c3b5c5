#pragma once
// Ends this process when the process that it works for is gone.

#include <atomic>
#include <memory>

namespace tengen::transport {

// Watches a pipe or a socket by a thread of its own, which needs no other thread of the process:
// not even one that keeps an interpreter's lock keeps it from working.
//
// Once the other end is closed, the process has `grace_s` seconds to end by itself. Time in which
// it wants a processor and has none does not count: on a busy machine it is slow, and no less
// entitled. Then it is killed. It is not killed while it is held.
//
// Any thread may call; nothing blocks. A fork of the process is not watched.
class Lifeline {
 public:
  // The descriptor stays the caller's, who keeps it open. Throws Error where the system allows no
  // further thread.
  Lifeline(int descriptor, double grace_s);

  // Between the two the process is not killed; the grace begins anew afterwards. They nest.
  void hold() { ++*holds_; }
  void release() { --*holds_; }

 private:
  // The thread outlives this object.
  std::shared_ptr<std::atomic<int>> holds_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tengen::transport
