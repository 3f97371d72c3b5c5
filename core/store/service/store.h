#pragma once
// A store that threads share: the engine behind one lock, and the waiting, which the engine leaves
// to its callers.

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

// Where steps go that memory does not hold.
struct DiskConfig {
  std::string directory;
  uint64_t num_bytes = 0;  // 0: there is no disk
  Durability durability = Durability::kNone;
  std::chrono::microseconds interval{0};  // between checkpoints, with kAsync and kSync
};

// What a store goes on with.
struct Resumed {
  std::map<uint32_t, engine::SavedSession> sessions;  // of clients of other processes
  uint64_t num_lost = 0;      // items that were removed while the checkpoint was made
  uint64_t num_repaired = 0;  // priorities that no float holds, of a version that kept them
};

// Thread-safe. Outlives its ports.
class Store {
 public:
  // Steps lie in files of `directory`, which clients map, or in memory of this process alone where
  // it is empty.
  Store(const std::string& directory, uint64_t memory_bytes, uint64_t seed,
        const DiskConfig& disk = {});
  ~Store();

  const std::string& directory() const { return directory_; }
  uint64_t memory_bytes() const { return memory_.budget_bytes(); }

  // From here on all changes outlive this process: they are kept in files of the directory, from
  // which a later store with the same tables goes on. With `goes_on` this store goes on from such
  // files; sessions of clients in the process that left them have ended. A disk with checkpoints
  // begins to make them here; without `goes_on` the store goes on from the disk's last checkpoint.
  // Precondition: nothing but tables and pools was added. Throws Error where the files are damaged
  // or another store's, or there is no room.
  Resumed keep(bool goes_on);
  // Null where nothing outlives the host.
  Checkpointer* checkpointer() { return checkpointer_.get(); }
  // The budgets, and how much of them steps take. Blocks no longer than other threads' calls take.
  struct Room {
    uint64_t memory_bytes = 0, memory_used_bytes = 0;
    uint64_t disk_bytes = 0, disk_used_bytes = 0;
  };
  Room room();
  // What went wrong, for people; empty: nothing. For example, that changes do not outlive this
  // process any more, or that the disk has bad rows or no room.
  std::string trouble();

  // Reads the engine while it stands still.
  template <class F>
  auto read(F&& f) {
    const std::scoped_lock lock(mutex_);
    return f(std::as_const(engine_));
  }
  // Changes the engine, and wakes threads that wait for a change. Blocks no longer than other
  // threads' calls take.
  template <class F>
  auto change(F&& f) {
    const std::scoped_lock lock(mutex_);
    const Steady steady;
    if (!log_.pending().empty()) settle();  // what a change that was refused has left
    const Changed changed(this);
    return f(engine_);
  }
  // The same for a client. Throws Error once the store is closed, and while memory is used up.
  template <class F>
  auto change_open(F&& f) {
    const std::scoped_lock lock(mutex_);
    check_open();
    const Steady steady;
    const Changed changed(this);
    return f(engine_);
  }
  // The same for the store's own threads, which have nobody to refuse: waits until there is memory,
  // and calls `f` again where it throws bad_alloc. Returns without a change once `is_over()`, or
  // the store ends.
  template <class IsOver, class F>
  void change_surely(IsOver&& is_over, F&& f) noexcept {
    until_memory([&] {
      std::unique_lock lock(mutex_);
      // Under the lock, so that no other change uses the reserve before this one.
      if (!wait_for_memory(&lock, is_over)) return;
      const Steady steady;
      const Changed changed(this);
      f(engine_);
    });
  }
  // The same for clients; `attempt` returns how much it changed. Once the store is closed nothing
  // is changed. Throws Error while memory is used up.
  template <class F>
  Progress try_change_open(F&& attempt) {
    const std::scoped_lock lock(mutex_);
    if (is_closed_) return Progress::kNone;
    Steady::check_reserve();
    const Steady steady;
    return attempt_once(attempt);
  }
  // Changes the engine by many calls of `step`, until that returns false; other threads have their
  // turn between them.
  template <class F>
  void change_in_steps(F&& step) {
    while (change(step)) let_others();
  }
  // Calls `attempt` until it returns kDone: again at once after kSome, and after kNone when another
  // thread has changed something. False where the deadline passes first. Throws Error once the
  // store is closed, and while memory is used up. `also_closed`, for the store's own threads: goes
  // on then too.
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

  // Sleeps just long enough for a waiting thread to get the lock, for a thread that takes it again
  // and again.
  static void let_others() { std::this_thread::sleep_for(std::chrono::microseconds(50)); }

  // Ends a session of this process's, whatever memory there is.
  void end_session(engine::SessionId id) noexcept;
  // Keeps changes that found no room or no memory to be kept in. Returns whether some still wait:
  // then call it now and then, also if nothing changes.
  bool keep_rest();

  // Closes the store: every waiting and later call of a client throws Error. Then makes a last
  // checkpoint, where the store makes checkpoints. Throws Error where that fails. Idempotent.
  void close();
  // Sets what is called after every change, under the lock; it must not call the store.
  void set_listener(std::function<void()> listener);

  // Has the engine open a writer for a session of its own. Where another writer of that name is
  // open, blocks until it is closed, as its client may just have died; throws Error where the
  // deadline passes first.
  engine::Engine::OpenedWriter begin_writer(const std::string& name, uint32_t pool,
                                            Deadline deadline);
  // The same for a sampler of `table`. Throws Error for a batch that memory can never hold.
  engine::SessionId begin_sampler(uint32_t table, uint32_t num_samples);

  // Opens a writer or a sampler in this process. With a disk `num_ahead` batches are requested
  // before they are needed, so that their steps are read meanwhile.
  WriterSession open_writer(const std::string& name, uint32_t pool, Deadline deadline = kAtOnce);
  SamplerSession open_sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead);
  SlabMap slab_map(uint32_t pool);

 private:
  // How long what must be done waits for memory before it tries again.
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
  // Calls `f` until it does not throw bad_alloc, or the store ends.
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
      // the attempt may have changed things that nobody waits for, such as the save of a chunk
      settle();
    }
    return progress;
  }
  // Logs all changes before it tells clients of them, and then starts the disk's transfers. Records
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
  size_t num_kept_ = 0;    // bytes of its records that the keeper has
  size_t num_logged_ = 0;  // that the checkpointer has
  std::unique_ptr<DiskTier> tier_;
  std::optional<engine::Disk> disk_;
  engine::Engine engine_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::function<void()> listener_;
  std::atomic<bool> is_ending_ = false;
  bool is_closed_ = false;
  bool is_finished_ = false;  // and the last checkpoint is made
};

}  // namespace tengen::store
