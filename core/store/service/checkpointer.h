#pragma once
// Makes checkpoints of a store with a disk: what was there when one began outlives the host.

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

// When checkpoints are made.
enum class Durability {
  kNone,        // never: nothing outlives the host
  kCheckpoint,  // when they are asked for, the disk needs one to use rows again, or the log is long
  kAsync,       // after each interval in which anything changed
  kSync,        // the same; a writer's flush waits for the one with its inserts
};

// "none", "checkpoint", "async" or "sync". Throws Error for another one.
Durability durability_of(const std::string& name);

// Thread-safe. A thread makes them one after another:
//
//   begin    under the store's lock: what is complete goes to disk, the rest into the log
//   wait     until the disk has it, or has no place for more; the store goes on meanwhile
//   sync     rows, then the log with the mark
//   end      under the lock: rows that only the checkpoint before named are free
class Checkpointer {
 public:
  // `store` and `tier` outlive the checkpointer. `interval` is that of kAsync and kSync.
  Checkpointer(Store* store, DiskTier* tier, const std::string& directory,
               const engine::State& state, Durability durability,
               std::chrono::microseconds interval);
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;
  ~Checkpointer() { stop(); }

  bool is_sync() const { return durability_ == Durability::kSync; }

  // Call under the store's lock. `records` tell what happened since the last call; `is_wanted` says
  // that the disk needs a checkpoint. False where there is no memory for the records: the next call
  // begins with them.
  bool commit(std::span<const std::byte> records, bool is_wanted) noexcept;

  // Asks for a checkpoint of all that has happened until now, and returns its number.
  uint64_t ask();
  // Whether ask() may have returned this number.
  bool knows(uint64_t number);
  // Blocks until the checkpoint of this number is made; false where the deadline passes first.
  // Throws Error where an attempt to make it has failed. Others follow, so that a later one may
  // have made it: `is_patient` waits for these, and throws only where there will be none.
  bool wait(uint64_t number, Deadline deadline, bool is_patient = false);
  uint64_t num_made();
  // When the last checkpoint began; none where there was none.
  std::optional<std::chrono::steady_clock::time_point> made_at();
  struct Failure {
    uint64_t number = 0;  // of the last checkpoint that could not be made
    std::string reason;   // empty: the last attempt succeeded
  };
  // What became of attempts to make checkpoints. The number is UINT64_MAX where there will be no
  // more.
  Failure failure();
  // Why the last attempt failed, or the next one would; empty: neither.
  std::string trouble();
  DurableLog& log() { return log_; }

  // Makes a last checkpoint, and ends the thread. Throws Error where it cannot be made; then the
  // thread goes on, and another call may succeed.
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
  bool lacks_records_ = false;  // whether commit() found no memory; under the store's lock
  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable made_;
  bool has_changed_ = false;
  uint64_t num_log_bytes_ = 0;  // since the last checkpoint
  bool is_asked_ = false;
  bool is_stopping_ = false;
  uint64_t num_begun_ = 0;
  uint64_t num_made_ = 0;               // checkpoints up to this number are made
  uint64_t num_failed_ = 0;             // the last one that could not be made; later ones may be
  std::string failure_;                 // why the last attempt failed; empty: it did not
  std::chrono::milliseconds pause_{0};  // before the next attempt
  std::optional<std::chrono::steady_clock::time_point> made_at_;
  std::thread thread_;
};

}  // namespace tengen::store
