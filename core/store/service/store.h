#pragma once
// A store that threads share: an engine protected by one lock. The engine itself never waits.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "base/steady.h"
#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/disk/disk_tier.h"
#include "store/disk/keeper.h"
#include "store/engine/engine.h"
#include "store/service/checkpointer.h"
#include "store/session/served_session.h"
#include "store/steps/gather.h"

namespace tengen::store {

// The settings of the disk for steps that do not fit in memory.
struct DiskConfig {
  std::string directory;
  uint64_t num_bytes = 0;  // 0: no disk
  Durability durability = Durability::kNone;
  std::chrono::microseconds interval{0};  // time between checkpoints, for kAsync and kSync
};

// The result of resuming a store.
struct Resumed {
  std::map<uint32_t, engine::SavedSession> sessions;  // sessions of clients in other processes
  uint64_t num_lost = 0;  // items that were removed while the checkpoint was made
};

// A store of experience, shared by threads. Thread-safe. Must outlive its sessions.
class Store {
 public:
  // Holds steps in files in `directory`, which clients map, or in private memory of this process if
  // `directory` is empty.
  Store(const std::string& directory, uint64_t memory_bytes, uint64_t seed,
        const DiskConfig& disk = {});
  ~Store();

  const std::string& directory() const { return directory_; }
  uint64_t memory_bytes() const { return memory_.budget_bytes(); }

  // From now on, all changes outlive this process: they are stored in files of the directory, from
  // which a later store with the same tables can resume. With `goes_on`, this store resumes from
  // existing files; the sessions of clients in the previous store's own process have ended. If the
  // disk makes checkpoints, they start now, and without `goes_on` or existing files the store
  // resumes from the disk's last checkpoint. Precondition: only tables and pools have been added.
  // Throws Error if the files are damaged or belong to another store, or if there is no space.
  Resumed keep(bool goes_on);
  // Returns the checkpointer, or null if nothing survives a host crash.
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  // The budgets for memory and disk, and the bytes that steps use of them. Reading them blocks only
  // while other threads hold the lock.
  struct Room {
    uint64_t memory_bytes = 0, memory_used_bytes = 0;
    uint64_t disk_bytes = 0, disk_used_bytes = 0;
  };
  Room room();
  // Returns a human-readable problem of the store, or an empty string. Examples: changes no longer
  // outlive this process, or the disk is full or has bad rows.
  std::string trouble();

  // Calls `f` with the engine, which no other thread changes meanwhile. Returns its result.
  template <class F>
  auto read(F&& f) {
    const std::scoped_lock lock(mutex_);
    return f(std::as_const(engine_));
  }
  // Calls `f`, which may change the engine, and wakes threads that wait for a change. Blocks only
  // while other threads hold the lock.
  template <class F>
  auto change(F&& f) {
    const std::scoped_lock lock(mutex_);
    const Steady steady;
    if (!log_.pending().empty()) settle();  // records of a change that failed
    const Changed changed(this);
    return f(engine_);
  }
  // As change(), for a client. Throws Error if the store is closed, or while memory is exhausted.
  template <class F>
  auto change_open(F&& f) {
    const std::scoped_lock lock(mutex_);
    check_open();
    const Steady steady;
    const Changed changed(this);
    return f(engine_);
  }
  // As change(), for the store's own threads, which cannot report an error: waits until there is
  // memory, and calls `f` again if it throws bad_alloc. Returns without a change if `is_over()`, or
  // if the store is being destroyed.
  template <class IsOver, class F>
  void change_surely(IsOver&& is_over, F&& f) noexcept {
    until_memory([&] {
      std::unique_lock lock(mutex_);
      // Waits for memory under the lock, so that no other change uses the reserve first.
      if (!wait_for_memory(&lock, is_over)) return;
      const Steady steady;
      const Changed changed(this);
      f(engine_);
    });
  }
  // As change_open(), but `attempt` returns how much it changed. Changes nothing if the store is
  // closed. Throws Error while memory is exhausted.
  template <class F>
  Progress try_change_open(F&& attempt) {
    const std::scoped_lock lock(mutex_);
    if (is_closed_) return Progress::kNone;
    Steady::check_reserve();
    const Steady steady;
    return attempt_once(attempt);
  }
  // Changes the engine with repeated calls of `step` until it returns false; other threads get
  // their turn between the calls.
  template <class F>
  void change_in_steps(F&& step) {
    while (change(step)) let_others();
  }
  // Calls `attempt` until it returns kDone: immediately after kSome, and after kNone when another
  // thread has changed something. Returns false if the deadline expires first. Throws Error if the
  // store is closed, or while memory is exhausted. `also_closed`, for the store's own threads,
  // continues even if the store is closed.
  template <class F>
  bool change_when(Deadline deadline, F&& attempt, bool also_closed = false) {
    std::unique_lock lock(mutex_);
    const Steady steady;
    bool in_time = true;
    while (true) {
      if (!also_closed) check_open();
      const Progress progress = attempt_once(attempt);
      if (progress == Progress::kDone) return true;
      if (!in_time) return false;
      if (progress == Progress::kSome) {
        lock.unlock();
        let_others();
        lock.lock();
        in_time = std::chrono::steady_clock::now() < deadline;
        continue;
      }
      in_time = condition_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    }
  }

  // Sleeps just long enough that a waiting thread gets the lock, before this thread retakes it.
  static void let_others() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

  // Ends a session of this process, even if memory is exhausted.
  void end_session(engine::SessionId id) noexcept;
  // Stores changes that could not be stored for lack of space or memory. Returns whether some
  // changes remain; then call keep_rest() from time to time, even if nothing changes.
  bool keep_rest();

  // Closes the store, so that every waiting or later call of a client throws Error. Then makes a
  // last checkpoint, if the store makes checkpoints. Throws Error if that fails. Idempotent.
  void close();
  // Sets a function to call after every change, under the lock. It must not call the store.
  void set_listener(std::function<void()> listener);

  // Opens a writer in a new session of the engine. If another writer with that name is open, blocks
  // until it is closed, because its client may just have died. Throws Error if the deadline expires
  // first.
  engine::Engine::OpenedWriter begin_writer(const std::string& name, uint32_t pool,
                                            Deadline deadline);
  // Begins a session for a sampler of `table`. Throws Error if memory cannot hold a batch.
  engine::SessionId begin_sampler(uint32_t table, uint32_t num_samples);

  // Open a writer or a sampler in this process. With a disk, a sampler requests `num_ahead` batches
  // in advance, so that their steps are read in the meantime.
  WriterSession open_writer(const std::string& name, uint32_t pool, Deadline deadline = kAtOnce);
  SamplerSession open_sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead);
  SlabMap slab_map(uint32_t pool);

 private:
  // The delay before the retry of a change that must not fail and lacks memory.
  static constexpr std::chrono::milliseconds kForMemory{50};
  struct Changed {
    explicit Changed(Store* changed) : store(changed) {}
    ~Changed() {
      store->settle();
      store->condition_.notify_all();
      if (store->listener_) store->listener_();
    }
    Store* const store;
  };
  // Calls `f` until it does not throw bad_alloc, or the store is being destroyed.
  template <class F>
  void until_memory(F&& f) noexcept {
    while (true) {
      try {
        return f();
      } catch (const std::bad_alloc&) {
        if (is_ending_) return;
        std::this_thread::sleep_for(kForMemory);
      }
    }
  }
  template <class IsOver>
  bool wait_for_memory(std::unique_lock<std::mutex>* lock, IsOver&& is_over) {
    while (!Steady::has_reserve()) {
      if (is_ending_ || is_over()) return false;
      lock->unlock();
      std::this_thread::sleep_for(kForMemory);
      lock->lock();
    }
    return true;
  }
  void tell_engine(const engine::Transfer& transfer, bool is_load,
                   const engine::TransferResult& result) noexcept;
  template <class F>
  Progress attempt_once(F&& attempt) {
    const Progress progress = attempt(engine_);
    if (progress != Progress::kNone) {
      const Changed changed(this);
    } else {
      // Settles even after kNone, because the attempt may have made changes that nobody waits for,
      // such as the save of a chunk
      settle();
    }
    return progress;
  }
  // Logs all changes before clients learn of them, and then starts the disk's transfers. Records
  // that find no memory stay in log_ until a later call.
  void settle() noexcept {
    const std::span<const std::byte> records = log_.pending();
    const std::span<const std::byte> unkept = records.subspan(num_kept_);
    const std::span<const std::byte> unlogged = records.subspan(num_logged_);
    const bool has_news = keeper_ && (!unkept.empty() || keeper_->is_behind());
    if (!has_news || keeper_->commit(unkept)) num_kept_ = records.size();
    if (!checkpointer_ || checkpointer_->commit(unlogged, engine_.wants_checkpoint())) {
      num_logged_ = records.size();
    }
    if (std::min(num_kept_, num_logged_) == records.size()) {
      log_.clear();
      num_kept_ = num_logged_ = 0;
    }
    if (tier_) tier_->start();
  }
  void check_open() const;
  engine::Disk* make_disk();
  engine::State begin_state() const;

  const std::string directory_;
  const DiskConfig disk_config_;
  std::mutex mutex_;
  std::condition_variable condition_;
  engine::Memory memory_;
  engine::Log log_;
  size_t num_kept_ = 0;    // bytes of log_ that the keeper has stored
  size_t num_logged_ = 0;  // bytes of log_ that the checkpointer has appended
  std::unique_ptr<DiskTier> tier_;
  std::optional<engine::Disk> disk_;
  engine::Engine engine_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::function<void()> listener_;
  std::atomic<bool> is_ending_ = false;
  bool is_closed_ = false;
  bool is_finished_ = false;  // closed, and the last checkpoint is complete
};

}  // namespace tengen::store
