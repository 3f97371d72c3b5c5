#pragma once
// Keeps an engine's log in files of the store's folder, so that another process can go on when this
// one is killed.
//
// `log-<n>` are mapped files of records: a record that is committed outlives the process, without a
// system call. A folder in a memory file system lives as long as its host.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "store/disk/state_files.h"
#include "store/state/state.h"
#include "transport/shared_memory.h"

namespace tengen::store {

class Keeper {
 public:
  // The state that a folder's files tell; none where it has no files. Throws Error where they are
  // damaged or of another version.
  static std::optional<engine::State> load(const std::string& directory);

  // Begins with `state`, and removes older files. Logs are files of `log_bytes`, or of one commit
  // that is longer. Throws Error where there is no room.
  Keeper(std::string directory, uint64_t log_bytes, const engine::State& state);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() = default;  // the files stay

  // Appends records: all or none of them, where the process is killed. One thread at a time; now
  // and then it makes a file. Where that fails, as for want of room, the files say no more how
  // things are: nobody goes on from them, and the keeper has the state in memory until a later
  // commit finds room for it. Returns false where there is no memory for the records: the next call
  // begins with them.
  bool commit(std::span<const std::byte> records) noexcept;
  // Whether nothing is kept until a later commit() succeeds, which may be one without records.
  bool is_behind() const { return is_behind_ && !is_over_; }
  // Why nothing is kept now; empty where it is.
  std::string trouble();

 private:
  using Clock = std::chrono::steady_clock;

  void begin(const engine::State& state);
  void append(std::span<const std::byte> records);
  void set_aside() noexcept;
  bool resume(std::span<const std::byte> records);
  void take_files();
  void write_all();
  void wait_longer(Clock::duration look);
  void set_trouble(const std::string& reason) noexcept;

  const std::string directory_;
  const uint64_t log_bytes_;
  uint64_t number_ = 0;  // number of log_
  std::optional<transport::SharedMemory> log_;
  uint64_t num_committed_ = 0;
  std::mutex mutex_;
  std::string trouble_;
  bool is_behind_ = false;               // whether the files do not tell how things are
  std::optional<engine::State> behind_;  // then: how things are; none while only the files tell
  size_t num_applied_ = 0;               // bytes of the next records that are in behind_
  Clock::time_point look_at_{};          // when memory, or room, is looked for again
  Clock::duration pause_{0};
  bool is_over_ = false;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
