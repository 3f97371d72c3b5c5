#pragma once
// Work in parts that a thread of its own begins, and that whoever needs the result helps to end.

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tengen::store {

// Belongs to one thread, the user's. The other thread comes with the first work, and sleeps where
// there is none. In a process that the user's forked it may only be destroyed.
class PartWorker {
 public:
  PartWorker() = default;
  PartWorker(const PartWorker&) = delete;
  PartWorker& operator=(const PartWorker&) = delete;
  // Begins no part any more, and waits for those that are begun.
  ~PartWorker();

  // Has `work` called with each number below `num_parts`, on the other thread; it must not throw.
  // Throws std::system_error where there is no thread to be had; then it begins nothing.
  // Precondition: what was begun before is finished.
  void begin(uint32_t num_parts, std::function<void(uint32_t)> work);
  // Does the parts that are not begun yet, and blocks until the others are done.
  void finish();
  // Whether finish() would find nothing to do and nothing to wait for.
  bool is_done() const;

 private:
  // What both threads know.
  struct Shared {
    // Does parts while there are any; the lock is held but in them.
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
  pid_t process_ = 0;               // that the thread lives in
};

}  // namespace tengen::store
