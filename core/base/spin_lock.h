#pragma once
// A one-byte lock, held for the few hundred nanoseconds that a thread works on one tree node.

#include <atomic>
#include <cstdint>
#include <thread>

namespace tengen {

// Meets BasicLockable, for std::lock_guard. Not recursive, not fair.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  // A holder that was descheduled needs our core: after this many checks, yield.
  static constexpr int kLooks = 64;

  // Blocks until the lock looks free; only reads, so that the holder keeps its cache line.
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
