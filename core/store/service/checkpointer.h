#pragma once
// Makes checkpoints of a store with a disk. A complete checkpoint survives a host crash, with all
// data that the store had when it began.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "store/disk/disk_tier.h"
#include "store/disk/durable_log.h"
#include "store/session/channel.h"

namespace tengen::store {

class Store;

// When a store makes checkpoints, the states that survive a host crash.
enum class Durability {
  kNone,        // never; nothing survives a host crash
  kCheckpoint,  // on request, when the disk needs one to reuse rows, or when the log is long
  kAsync,       // at the end of each interval in which the store changed
  kSync,        // as kAsync; a writer's flush also waits for the checkpoint with its inserts
};

// Converts "none", "checkpoint", "async" or "sync". Throws Error for any other name.
Durability durability_of(const std::string& name);

// Thread-safe. A thread makes checkpoints one after another:
//
//   begin    under the store's lock: complete chunks go to disk, the rest into the log
//   wait     until the disk has them, or has no free row; meanwhile the store continues
//   sync     rows, then the log with the mark
//   end      under the lock: rows that only the previous checkpoint refers to become free
class Checkpointer {
 public:
  // `store` and `tier` must outlive the checkpointer. `interval` applies to kAsync and kSync.
  Checkpointer(Store* store, DiskTier* tier, const std::string& directory,
               const engine::State& state, Durability durability,
               std::chrono::microseconds interval);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer() { stop(); }

  bool is_sync() const { return durability_ == Durability::kSync; }

  // Adds `records`, the changes since the last call, to the log. `is_wanted` says that the disk
  // needs a checkpoint. The caller holds the store's lock. Returns false if there is no memory for
  // the records; the next call must then begin with the same records.
  bool commit(std::span<const std::byte> records, bool is_wanted) noexcept;

  // Requests a checkpoint of everything up to now, and returns its number.
  uint64_t ask();
  // Whether ask() may have returned `number`.
  bool knows(uint64_t number);
  // Blocks until checkpoint `number` is complete. Returns false if the deadline expires first.
  // Throws Error if an attempt to make it has failed. With `is_patient`, waits for later attempts,
  // which may succeed, and throws Error only if no more will follow.
  bool wait(uint64_t number, Deadline deadline, bool is_patient = false);
  uint64_t num_made();
  // Returns the time at which the last checkpoint began, or none if there is no checkpoint.
  std::optional<std::chrono::steady_clock::time_point> made_at();
  struct Failure {
    uint64_t number = 0;  // number of the last checkpoint that failed
    std::string reason;   // empty if the last attempt succeeded
  };
  // Returns the last failed checkpoint. Its number is UINT64_MAX if no attempts will follow.
  Failure failure();
  // Returns why the last checkpoint failed or the next one would fail, or an empty string.
  std::string trouble();
  DurableLog& log() { return log_; }

  // Makes a last checkpoint, and ends the thread. Throws Error if that checkpoint fails. The thread
  // then continues, and another call may succeed.
  void finish();
  // Ends the thread without a last checkpoint. Idempotent.
  void stop();

 private:
  void run();
  bool wait_for_work();
  void make();
  void end_attempt(std::string error);
  void wait_for_disk();
  bool is_stopping();

  Store* const store_;
  DiskTier* const tier_;
  const Durability durability_;
  const std::chrono::microseconds interval_;
  DurableLog log_;
  bool lacks_records_ = false;  // whether commit() found no memory; guarded by the store's lock
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable made_;
  bool has_changed_ = false;
  uint64_t num_log_bytes_ = 0;  // bytes of records since the last checkpoint
  bool is_asked_ = false;
  bool is_stopping_ = false;
  uint64_t num_begun_ = 0;
  uint64_t num_made_ = 0;               // checkpoints up to this number are complete
  uint64_t num_failed_ = 0;             // the last checkpoint that failed; later ones may succeed
  std::string failure_;                 // the error of the last attempt; empty if it succeeded
  std::chrono::milliseconds pause_{0};  // delay before the next attempt
  std::optional<std::chrono::steady_clock::time_point> made_at_;
  std::thread thread_;
};

}  // namespace tengen::store
