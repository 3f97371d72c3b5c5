#pragma once
// Splits work into parts: a second thread starts them, and the thread that needs the result helps.

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tengen::store {

// Runs the parts of a task in a second thread, for one user thread. The second thread starts at the
// first call of begin(), and sleeps while it has no work. In a forked child process, a PartWorker
// may only be destroyed.
class PartWorker {
 public:
  PartWorker() = default;
  PartWorker(const PartWorker&) = delete;
  PartWorker& operator=(const PartWorker&) = delete;
  // Drops parts that have not started, and blocks until the running parts have ended.
  ~PartWorker();

  // Makes the second thread call `work`, which must not throw, with each index below `num_parts`.
  // If no thread starts, throws Error and does nothing. Precondition: all earlier work is finished.
  void begin(uint32_t num_parts, std::function<void(uint32_t)> work);
  // Runs the parts that have not been started, and blocks until all parts are done.
  void finish();
  // Whether finish() would return immediately because all parts are done.
  bool is_done() const;

 private:
  // State shared by the user's thread and the second thread.
  struct Shared {
    // Runs parts until none is left. Releases `lock` only while a part runs.
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
