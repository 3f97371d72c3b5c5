#pragma once
// A store that threads share: the engine behind one lock, and the waiting, which the engine leaves
// to its callers.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/steady.h"
#include "store/clients/sampler_port.h"
#include "store/clients/slab_map.h"
#include "store/clients/writer.h"
#include "store/disk/disk_tier.h"
#include "store/disk/keeper.h"
#include "store/engine/engine.h"
#include "store/service/checkpointer.h"
#include "store/session/served_session.h"

namespace tengen::store {

// Where steps go that memory does not hold.
struct DiskConfig {
  std::string directory;
  uint64_t num_bytes = 0;       // 0: there is no disk
  bool refuses_damage = false;  // where false, items that cannot be read are removed
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
  // The same; `attempt` returns how much it changed.
  template <class F>
  Progress try_change(F&& attempt) {
    const std::scoped_lock lock(mutex_);
    const Steady steady;
    return attempt_once(attempt);
  }
  // The same for clients; once the store is closed nothing is changed. Throws Error while memory is
  // used up.
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

  // Waits until a change that follows has memory: for the store's own threads, which have nobody to
  // refuse.
  static void wait_for_memory() noexcept;

  // Ends a session of this process's, whatever memory there is.
  void end_session(engine::SessionId id) noexcept;

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
  std::unique_ptr<SamplerPort> open_sampler(uint32_t table, uint32_t num_samples,
                                            uint32_t num_ahead);
  std::unique_ptr<Channel> open_sampler_channel(uint32_t table, uint32_t num_samples);
  SlabMap slab_map(uint32_t pool);

 private:
  struct Changed {
    explicit Changed(Store* changed) : store(changed) {}
    ~Changed() {
      store->settle();
      store->condition_.notify_all();
      if (store->listener_) store->listener_();
    }
    Store* const store;
  };
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
  // Keeps all changes before anybody is told of them; then the disk may begin its transfers.
  void settle() {
    const std::span<const std::byte> records = log_.pending();
    if (keeper_ && !records.empty()) keeper_->commit(records);
    if (checkpointer_) checkpointer_->commit(records, engine_.wants_checkpoint());
    log_.clear();
    if (tier_) tier_->start();
  }
  void check_open() const;
  // Makes a channel of a session, which ends here where there is no memory for one.
  std::unique_ptr<Channel> open_channel(
      engine::SessionId id, const std::function<std::unique_ptr<ServedSession>()>& serve);
  engine::Disk* make_disk();
  engine::State begin_state() const;

  const std::string directory_;
  const DiskConfig disk_config_;
  std::mutex mutex_;
  std::condition_variable condition_;
  engine::Memory memory_;
  engine::Log log_;
  std::unique_ptr<DiskTier> tier_;
  std::optional<engine::Disk> disk_;
  engine::Engine engine_;
  std::unique_ptr<Keeper> keeper_;
  std::unique_ptr<Checkpointer> checkpointer_;
  std::function<void()> listener_;
  bool is_closed_ = false;
  bool is_finished_ = false;  // and the last checkpoint is made
};

}  // namespace tengen::store
