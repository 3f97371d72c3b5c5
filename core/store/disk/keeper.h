#pragma once
// Stores an engine's log in files of the store's folder, so that another process can resume if this
// one is killed.
//
// `log-<n>` are mapped files of records. A committed record outlives the process without a system
// call. A folder in a memory file system lives as long as its host.

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
  // Returns the state that a folder's files contain, or none if there are no files. Throws Error if
  // they are damaged or have an unsupported version.
  static std::optional<engine::State> load(const std::string& directory);

  // Begins with `state`, and removes older files. A log file has the size `log_bytes`, or more if
  // one commit needs more. Throws Error if there is no space.
  Keeper(std::string directory, uint64_t log_bytes, const engine::State& state);
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() = default;  // the files stay

  // Appends records atomically: if the process is killed, either all or none of them are stored.
  // For one thread at a time. Some calls create a file. If that fails, for example because there is
  // no space, the files are out of date: no process resumes from them, and the keeper holds the
  // state in memory until a later commit finds space for it. Returns false if there is no memory
  // for the records; the next call must then begin with the same records.
  bool commit(std::span<const std::byte> records) noexcept;
  // Whether the files are out of date until a later commit() succeeds. That commit may be empty.
  bool is_behind() const { return is_behind_ && !is_over_; }
  // Returns the reason why changes cannot be stored now, or an empty string.
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
  uint64_t number_ = 0;  // number of the log file in log_
  std::optional<transport::SharedMemory> log_;
  uint64_t num_committed_ = 0;
  std::mutex mutex_;
  std::string trouble_;
  bool is_behind_ = false;  // whether the files are out of date
  std::optional<engine::State>
      behind_;  // if is_behind_, the current state, or none while only the files contain it
  size_t num_applied_ = 0;  // bytes at the start of the next commit that behind_ already contains
  Clock::time_point look_at_{};  // time of the next check for memory or space
  Clock::duration pause_{0};
  bool is_over_ = false;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
