#pragma once
// Work in parts: a second thread starts it, and the thread that needs the result helps finish it.

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tengen::store {

// Belongs to one thread, the user's. The second thread starts with the first call of begin(), and
// sleeps while it has no work. In a forked child process, a PartWorker may only be destroyed.
class PartWorker {
 public:
  PartWorker() = default;
  PartWorker(const PartWorker&) = delete;
  PartWorker& operator=(const PartWorker&) = delete;
  // Starts no more parts, and waits for parts that have been started.
  ~PartWorker();

  // Makes the second thread call `work`, which must not throw, with each index below `num_parts`.
  // If no thread starts, throws Error and does nothing. Precondition: all earlier work is finished.
  void begin(uint32_t num_parts, std::function<void(uint32_t)> work);
  // Does the parts that have not been started yet, and blocks until all parts are done.
  void finish();
  // Whether finish() would return immediately because all parts are done.
  bool is_done() const;

 private:
  // State that both threads share.
  struct Shared {
    // Does parts until none is left. Releases the lock only while it does a part.
    void do_parts(std::unique_lock<std::mutex>* lock);
    void run();

    std::mutex mutex;
    std::condition_variable has_work;
    std::condition_variable is_done;
    std::function<void(uint32_t)> work;
    uint32_t num_parts = 0;
    uint32_t num_begun = 0;
    uint32_t num_done = 0;
    bool is_over = false;
    std::thread thread;
  };

  std::unique_ptr<Shared> shared_;  // created by the first begin()
  pid_t process_ = 0;               // the process that owns the thread
};

}  // namespace tengen::store
