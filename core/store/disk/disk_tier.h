#pragma once
// The threads that copy a store's chunks between memory and files.

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

// Copies chunks to and from disk, in one file per pool, called rows-<pool>. Only one thread at a
// time may call load(), save() and start(). Transfers run in order, as many at the same time as
// there are threads. A load that fails because the process lacks descriptors or memory is retried
// later, while others continue.
class DiskTier final : public engine::Tier {
 public:
  // Called by any thread of the tier when a transfer has ended, to notify the store's engine.
  // Neither Done nor Room may throw.
  using Done =
      std::function<void(const engine::Transfer&, bool is_load, const engine::TransferResult&)>;
  // Called when the disk has space again, after a save failed because the disk was full.
  using Room = std::function<void()>;
  // With `is_hidden`, the files vanish with this process. Throws Error if no file can be created in
  // the directory, or no thread can be started.
  DiskTier(std::string directory, bool is_hidden, Done done, Room room);
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;
  ~DiskTier() override { stop(); }
  // Drops transfers that have not started; blocks until running ones have ended. Idempotent.
  void stop();

  void reserve(size_t num_transfers) override;
  void load(const engine::Transfer& transfer) override { ask({transfer, true, false}); }
  void save(const engine::Transfer& transfer) override { ask({transfer, false, false}); }
  // Starts the transfers that load() and save() have requested since the last call of start().
  void start() noexcept;

  // Blocks until all rows whose saves have ended would survive a host crash. Returns the error if a
  // sync fails, or an empty string. If it throws bad_alloc, nothing was synced.
  std::string sync();

  // Returns the resource that saves or loads lack now (space, descriptors or memory). If they lack
  // nothing, returns the first other error, or an empty string.
  std::string trouble();

 private:
  struct Job {
    engine::Transfer transfer;
    bool is_load = false;
    bool was_put_off = false;
  };
  using Jobs = std::list<Job>;  // a list, so that moving a job allocates no memory
  // A resource that the system lacks.
  struct Shortage {
    std::string reason;  // empty if there is no shortage
    std::string told;    // the reason that was printed; cleared when a transfer succeeds
  };

  void ask(const Job& job);
  void run();
  // Waits for a job, and meanwhile regularly checks whether a shortage has ended. Returns false
  // when the tier stops.
  bool wait_for_job(std::unique_lock<std::mutex>* lock);
  void look_for_room(std::unique_lock<std::mutex>* lock);
  // Turns a failed save into a shortage if the whole disk seems to fail. Otherwise every row would
  // be marked as bad, one after another. The caller holds the lock.
  void doubt_disk(engine::TransferResult* of_save);
  // Records how a transfer ended. The caller holds the lock.
  void note(const Job& job, const engine::TransferResult& result);
  engine::TransferResult perform(const Job& job) noexcept;
  engine::TransferResult transfer(const Job& job);
  RowFile& file_of(const engine::Transfer& transfer);

  const std::string directory_;
  const bool is_hidden_;
  const Done done_;
  const Room room_;
  Jobs asked_;  // transfers that were requested but not started
  Jobs spare_;  // list nodes, reused for later requests
  std::mutex mutex_;
  std::condition_variable condition_;
  Jobs jobs_;
  Jobs put_off_;                                        // loads to retry at again_at_
  std::map<uint32_t, std::unique_ptr<RowFile>> files_;  // row files by pool
  std::string trouble_;
  int num_bad_rows_ = 0;  // consecutive failed saves, without shortages
  Shortage of_saves_;
  Shortage of_loads_;
  engine::Transfer short_;  // the last save that found no space
  std::chrono::steady_clock::time_point again_at_;
  std::chrono::steady_clock::time_point look_at_;
  std::chrono::milliseconds look_after_{200};  // delay after the last shortage
  bool is_looking_ = false;                    // whether a thread is checking for space
  bool is_watching_ = false;  // whether some thread wakes up in time for the next check
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tengen::store
