#pragma once
// Keeps an engine's log in files of the store's folder, so that another process can go on when this
// one is killed.
//
// `log-<n>` are mapped files of records: a record that is committed outlives the process, without a
// system call. A folder in a memory file system lives as long as its host.

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
  // and then it makes a file. Where there is no room the keeper removes the files, which say no
  // more how things are, and has the state in memory until a later commit finds room for it.
  void commit(std::span<const std::byte> records) noexcept;
  // Why nothing is kept now; empty where it is.
  std::string trouble();

 private:
  void begin(const engine::State& state);
  void begin_log(uint64_t num_bytes);
  void append(std::span<const std::byte> records);
  void give_up(const std::string& reason, std::span<const std::byte> records) noexcept;
  void resume(std::span<const std::byte> records);
  void set_trouble(const std::string& reason) noexcept;

  const std::string directory_;
  const uint64_t log_bytes_;
  uint64_t number_ = 0;  // number of log_
  std::optional<transport::SharedMemory> log_;
  uint64_t num_committed_ = 0;
  std::mutex mutex_;
  std::string trouble_;
  std::optional<engine::State> behind_;  // while there are no files: how things are
  uint32_t num_skipped_ = 0;             // commits since room was looked for
  bool is_over_ = false;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
