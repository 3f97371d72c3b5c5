#pragma once
// The threads that copy a store's chunks between memory and its files.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "store/disk/row_file.h"
#include "store/steps/tier.h"

namespace tengen::store {

// One file a pool, called rows-<pool>. load(), save() and start() are for one thread at a time;
// transfers are done in their order, as many at once as there are threads. A load that fails
// because the process is out of descriptors or memory is tried again later; others go on meanwhile.
class DiskTier final : public engine::Tier {
 public:
  // Tells the store's engine that a transfer has ended; called by any of the tier's threads. Must
  // not throw, and neither must Room.
  using Done =
      std::function<void(const engine::Transfer&, bool is_load, const engine::TransferResult&)>;
  // Tells that the disk has room again, after a save failed because it had none.
  using Room = std::function<void()>;
  // With `is_hidden` the files vanish with this process. Throws Error where no file can be made in
  // the directory, or no thread.
  DiskTier(std::string directory, bool is_hidden, Done done, Room room);
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;
  ~DiskTier() override { stop(); }
  // Drops transfers that have not begun; blocks until the others have ended. Idempotent.
  void stop();

  void reserve(size_t num_transfers) override;
  void load(const engine::Transfer& transfer) override { ask({transfer, true, false}); }
  void save(const engine::Transfer& transfer) override { ask({transfer, false, false}); }
  // Begins the transfers that were asked for since the last call; none begins before.
  void start() noexcept;

  // Blocks until rows whose saves have ended survive the loss of the host. Returns why they may
  // not; empty: they do. Throws bad_alloc before it has tried.
  std::string sync();

  // What saves or loads have none of now: room, descriptors or memory. Else the first other error;
  // empty: none.
  std::string trouble();

 private:
  struct Job {
    engine::Transfer transfer;
    bool is_load = false;
    bool was_put_off = false;
  };
  using Jobs = std::list<Job>;  // so that a job is moved without memory
  // What the system had none of.
  struct Shortage {
    std::string reason;  // empty: there is some
    std::string told;    // the reason that was printed; empty since a transfer succeeded
  };

  void ask(const Job& job);
  void run();
  // Waits for a job, and meanwhile looks now and then for what the system had none of; false at the
  // end.
  bool wait_for_job(std::unique_lock<std::mutex>* lock);
  void look_for_room(std::unique_lock<std::mutex>* lock);
  // Makes the failure of a save a shortage where the whole disk seems to fail, so that its rows are
  // not given up one after another. For callers that have the lock.
  void doubt_disk(engine::TransferResult* of_save);
  // Notes how a transfer ended. For callers that have the lock.
  void note(const Job& job, const engine::TransferResult& result);
  engine::TransferResult perform(const Job& job) noexcept;
  engine::TransferResult transfer(const Job& job);
  RowFile& file_of(const engine::Transfer& transfer);

  const std::string directory_;
  const bool is_hidden_;
  const Done done_;
  const Room room_;
  Jobs asked_;  // and not started
  Jobs spare_;  // for those that will be asked for
  std::mutex mutex_;
  std::condition_variable condition_;
  Jobs jobs_;
  Jobs put_off_;                                        // loads, until again_at_
  std::map<uint32_t, std::unique_ptr<RowFile>> files_;  // by pool
  std::string trouble_;
  int num_bad_rows_ = 0;  // saves that failed since one succeeded, other than for a shortage
  Shortage of_saves_;
  Shortage of_loads_;
  engine::Transfer short_;  // the last save that found no room
  std::chrono::steady_clock::time_point again_at_;
  std::chrono::steady_clock::time_point look_at_;
  std::chrono::milliseconds look_after_{200};  // the last shortage
  bool is_looking_ = false;                    // whether a thread looks for room
  bool is_watching_ = false;                   // whether a thread waits no longer than for a look
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tengen::store
