#pragma once
// Files from which another process goes on: `state-<n>` holds in few records what all logs before
// log-<n> hold.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/state/state.h"

namespace tengen::store {

// Raised by every change of a record, and of the files.
constexpr uint64_t kStateVersion = 5;
// The rule that a damaged file breaks, and what to do.
constexpr const char* kMustBeWhole =
    "must be whole, and is damaged; look after the disk, put a copy of the folder back, or remove "
    "it";
// Throws Error unless `version`, which the file `path` has, is kStateVersion.
void check_version(uint64_t version, const std::string& path);

std::string state_path(const std::string& directory, uint64_t number);
std::string log_path(const std::string& directory, uint64_t number);
// The numbers of the states that a folder has, the newest first.
std::vector<uint64_t> state_numbers(const std::string& directory);
// A number above those of all files.
uint64_t next_number(const std::string& directory);
// Removes states, logs, and parts of them, of the numbers from `begin` on that are below `end`.
void remove_files(const std::string& directory, uint64_t begin, uint64_t end = UINT64_MAX);

// The records of a state, or the state that they make. Throw Error where the file is damaged or of
// another version.
std::vector<std::byte> read_state_records(const std::string& directory, uint64_t number);
engine::State read_state(const std::string& directory, uint64_t number);
// Writes the state whole or not at all, with `is_synced` also where the host is lost. Returns the
// file's size in bytes. Throws Error where there is no room.
uint64_t write_state(const std::string& directory, uint64_t number, const engine::State& state,
                     bool is_synced);

// A thread that replaces logs by a state when they have grown to `min_bytes`, or to twice the
// state.
class Compactor {
 public:
  // Applies the whole log of a number to a state; throws Error.
  using ApplyLog = std::function<void(uint64_t number, engine::State* state)>;
  using Fail = std::function<void(const std::string& reason)>;  // by the thread, which ends then
  // The newest state is number `first`, of `state_bytes`.
  Compactor(std::string directory, uint64_t first, uint64_t state_bytes, uint64_t min_bytes,
            bool is_synced, ApplyLog apply, Fail fail);
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;
  ~Compactor();  // a state that is being written is finished

  // Says that logs before number `end` are closed, and hold `num_bytes` more than was said before.
  void add(uint64_t end, uint64_t num_bytes);

 private:
  void run();

  const std::string directory_;
  const uint64_t min_bytes_;
  const bool is_synced_;
  const ApplyLog apply_;
  const Fail fail_;
  // Used by the thread alone.
  uint64_t first_;  // the newest state's number
  uint64_t state_bytes_;
  // Shared, under the mutex.
  std::mutex mutex_;
  std::condition_variable condition_;
  uint64_t end_ = 0;
  uint64_t num_bytes_ = 0;  // of logs that no state replaces
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tengen::store
