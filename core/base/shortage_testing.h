#pragma once
// A replacement of `new` for tests, which can fail as if memory were exhausted.

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>

#include "base/steady.h"
#include "base/testing.h"

namespace tengen {

// The maximum size in bytes of an allocation with `new`, in all threads.
inline std::atomic<size_t> most_new_bytes = SIZE_MAX;
// The number of `new` calls in this thread before the next one that fails; negative: none fails.
inline thread_local int64_t num_news_left = -1;

// While a LittleMemory exists, every `new` of more than `most_bytes` fails.
class LittleMemory {
 public:
  explicit LittleMemory(size_t most_bytes) { most_new_bytes = most_bytes; }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;
  ~LittleMemory() { most_new_bytes = SIZE_MAX; }
};

// Returns the size in bytes of this process's address space, which ulimit -v limits.
inline uint64_t num_mapped_bytes() {
  uint64_t num_pages = 0;
  std::ifstream("/proc/self/statm") >> num_pages;
  return num_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// While a NoMemory exists, this process can map no more memory, and the reserve of Steady is empty.
class NoMemory {
 public:
  NoMemory() {
    TENGEN_CHECK(getrlimit(RLIMIT_AS, &before_) == 0);
    (void)Steady::has_reserve();
    const Steady steady;
    do {
      std::get_new_handler()();  // releases the reserve
      const rlimit now{num_mapped_bytes(), before_.rlim_max};
      TENGEN_CHECK(setrlimit(RLIMIT_AS, &now) == 0);
      // Another thread may have refilled the reserve before the limit was set.
    } while (Steady::has_reserve());
  }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  ~NoMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

// Calls `f` until it completes. In the n-th attempt the n-th `new` fails, and `check` is called
// afterwards. Returns the number of failed attempts.
template <class F, class Check>
int64_t fail_each_new(F&& f, Check&& check) {
  for (int64_t num_news = 0;; ++num_news) {
    num_news_left = num_news;
    try {
      f();
      num_news_left = -1;
      return num_news;
    } catch (const std::bad_alloc&) {
      num_news_left = -1;
      check();
    }
  }
}

}  // namespace tengen

void* operator new(size_t num_bytes) {
  if (tengen::num_news_left >= 0 && tengen::num_news_left-- == 0) throw std::bad_alloc();
  while (true) {
    if (num_bytes <= tengen::most_new_bytes.load(std::memory_order_relaxed)) {
      if (void* const block = std::malloc(num_bytes == 0 ? 1 : num_bytes)) return block;
    }
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
void* operator new(size_t num_bytes, const std::nothrow_t&) noexcept {
  return std::malloc(num_bytes == 0 ? 1 : num_bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, size_t) noexcept { std::free(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { std::free(block); }
