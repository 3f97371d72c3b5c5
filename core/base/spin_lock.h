#pragma once
// A one-byte lock for critical sections of a few hundred nanoseconds, such as on a tree node.

#include <atomic>
#include <cstdint>
#include <thread>

namespace tengen {

// A spin lock that meets BasicLockable, for std::lock_guard. Not recursive, not fair.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  // The number of checks before wait() yields the core, which a descheduled holder may need.
  static constexpr int kLooks = 64;

  // Waits until the lock appears free. Only reads it, so that the holder keeps the cache line.
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
