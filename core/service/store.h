#pragma once
// A store that threads share: the engine behind one lock, and the waiting that the engine leaves
// to its callers.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "replay/engine.h"
#include "service/ports.h"
#include "service/slab_map.h"

namespace tengen::service {

// What an attempt changed.
enum class Progress { kNone, kSome, kDone };

// Thread-safe. Outlives its ports.
class Store {
 public:
  // Steps lie in files of `directory`, which clients map, or in memory of this process alone where
  // it is empty.
  Store(const std::string& directory, uint64_t memory_bytes, uint64_t seed)
      : directory_(directory), memory_(directory, memory_bytes), engine_(&memory_, seed) {}

  const std::string& directory() const { return directory_; }
  uint64_t memory_bytes() const { return memory_.budget_bytes(); }

  // Reads the engine while it stands still.
  template <class F>
  auto read(F&& f) {
    const std::scoped_lock lock(mutex_);
    return f(std::as_const(engine_));
  }
  // Changes it, and lets those who wait try again. Does not block for more than others' calls.
  template <class F>
  auto change(F&& f) {
    const std::scoped_lock lock(mutex_);
    const Changed changed(this);
    return f(engine_);
  }
  // The same, where `attempt` tells how much it changed.
  template <class F>
  Progress try_change(F&& attempt) {
    const std::scoped_lock lock(mutex_);
    return attempt_once(attempt);
  }
  // Calls `attempt` again after every change of others until it is done; false where the deadline
  // passes first. Throws Error once the store is closed.
  template <class F>
  bool change_when(Deadline deadline, F&& attempt) {
    std::unique_lock lock(mutex_);
    bool in_time = true;
    while (true) {
      check_open();
      if (attempt_once(attempt) == Progress::kDone) return true;
      if (!in_time) return false;
      in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    }
  }

  // Everyone who waits, and who comes later, gets an Error.
  void close();
  bool is_closed();
  // Called after every change, under the lock; it must not call the store.
  void set_listener(std::function<void()> listener);

  // A table's port in this process. Blocks for other calls only. Throws Error for a writer's name
  // that is open.
  std::unique_ptr<WriterPort> open_writer(const std::string& name, uint32_t pool);
  std::unique_ptr<SamplerPort> open_sampler(uint32_t table, uint32_t num_samples);
  SlabMap slab_map(uint32_t pool);

 private:
  struct Changed {
    explicit Changed(Store* changed) : store(changed) {}
    ~Changed() {
      store->condition_.notify_all();
      if (store->listener_) store->listener_();
    }
    Store* const store;
  };
  template <class F>
  Progress attempt_once(F&& attempt) {
    const Progress progress = attempt(engine_);
    if (progress != Progress::kNone) const Changed changed(this);
    return progress;
  }
  void check_open() const;

  const std::string directory_;
  std::mutex mutex_;
  std::condition_variable condition_;
  replay::Memory memory_;
  replay::Engine engine_;
  std::function<void()> listener_;
  bool is_closed_ = false;
};

// Inserts what is left of a run, of which `*done` items are in already.
Progress insert_run(replay::Engine& engine, uint32_t writer, const InsertRun& run, uint32_t* done);

// Fills in what a client gets of a loan.
void deliver(const replay::Loan& loan, Delivery* delivery);

}  // namespace tengen::service
