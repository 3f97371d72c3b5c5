#pragma once
// Work in parts that a second thread begins, and that the thread that needs the result helps to
// finish.

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tengen::store {

// Belongs to one thread, the user's. The second thread is started with the first work, and
// sleeps while there is none. In a forked child process it may only be destroyed.
class PartWorker {
 public:
  PartWorker() = default;
  PartWorker(const PartWorker&) = delete;
  PartWorker& operator=(const PartWorker&) = delete;
  // Begins no more parts, and waits for those that are begun.
  ~PartWorker();

  // Has the second thread call `work`, which must not throw, with each number below `num_parts`.
  // Throws Error, and begins nothing, where no thread can be started. Precondition: the
  // work that was begun before is finished.
  void begin(uint32_t num_parts, std::function<void(uint32_t)> work);
  // Does the parts that are not begun yet, and blocks until all are done.
  void finish();
  // Whether finish() would find nothing to do and nothing to wait for.
  bool is_done() const;

 private:
  // What both threads share.
  struct Shared {
    // Does parts while there are any. The lock is released only while a part is done.
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

  std::unique_ptr<Shared> shared_;  // with the first work
  pid_t process_ = 0;               // the process that the thread lives in
};

}  // namespace tengen::store
