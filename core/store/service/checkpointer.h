#pragma once
// Makes checkpoints of a store with a disk. The data at the start of a checkpoint survives a host
// crash.

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

// When to make checkpoints.
enum class Durability {
  kNone,        // never; nothing survives a host crash
  kCheckpoint,  // on request, when the disk needs one to reuse rows, or when the log is long
  kAsync,       // after each interval in which anything changed
  kSync,        // as kAsync; a writer's flush also waits for the checkpoint with its inserts
};

// `name` is "none", "checkpoint", "async" or "sync". Throws Error for other names.
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

  // The caller holds the store's lock. `records` are the changes since the last call; `is_wanted`
  // says that the disk needs a checkpoint. Returns false if there is no memory for the records; the
  // next call must then begin with the same records.
  bool commit(std::span<const std::byte> records, bool is_wanted) noexcept;

  // Requests a checkpoint of everything up to now, and returns its number.
  uint64_t ask();
  // Whether `number` may be a result of ask().
  bool knows(uint64_t number);
  // Blocks until checkpoint `number` is complete. Returns false if the deadline expires first.
  // Throws Error if an attempt to make it has failed. Later attempts may succeed: with
  // `is_patient`, waits for them, and throws only if there will be no more.
  bool wait(uint64_t number, Deadline deadline, bool is_patient = false);
  uint64_t num_made();
  // The time at which the last checkpoint began, or none if there is no checkpoint.
  std::optional<std::chrono::steady_clock::time_point> made_at();
  struct Failure {
    uint64_t number = 0;  // number of the last checkpoint that failed
    std::string reason;   // empty if the last attempt succeeded
  };
  // The result of the attempts to make checkpoints. The number is UINT64_MAX if no more will
  // follow.
  Failure failure();
  // The reason why the last attempt failed or the next one would fail, or an empty string.
  std::string trouble();
  DurableLog& log() { return log_; }

  // Makes a last checkpoint, and ends the thread. Throws Error if the checkpoint fails; the thread
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
  uint64_t num_log_bytes_ = 0;  // bytes since the last checkpoint
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
