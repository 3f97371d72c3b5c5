#pragma once
// A one-byte lock that a thread holds for a few hundred nanoseconds while it works on a tree node.

#include <atomic>
#include <cstdint>
#include <thread>

namespace tengen {

// Meets BasicLockable, so std::lock_guard accepts it. Not recursive, not fair.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  // The number of checks before yielding, because a descheduled holder may need this core.
  static constexpr int kLooks = 64;

  // Waits until the lock appears free. Only reads, so that the holder keeps the cache line.
  void wait() const {
    for (int look = 0; held_.load(std::memory_order_relaxed); ++look) {
      if (look < kLooks) {
        pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  std::atomic<bool> held_{false};
};
static_assert(sizeof(SpinLock) == 1);

}  // namespace tengen
