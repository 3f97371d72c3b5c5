#pragma once
// Files of a folder by which another process goes on: `state-<n>` says in few records what all logs
// before log-<n> say.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/engine/state.h"

namespace tengen::store {

// Raised by every change of a record, and of the files.
constexpr uint64_t kStateVersion = 5;
// The rule that a damaged file breaks, and what to do.
constexpr const char* kMustBeWhole =
    "must be whole, and is damaged; look after the disk, put a copy of the folder back, or remove "
    "it";
// Throws Error for another one, which `path` has.
void check_version(uint64_t version, const std::string& path);

std::string state_path(const std::string& directory, uint64_t number);
std::string log_path(const std::string& directory, uint64_t number);
// The numbers of the states that a folder has, the newest first.
std::vector<uint64_t> state_numbers(const std::string& directory);
// One above those of every file.
uint64_t next_number(const std::string& directory);
// Removes states, logs, and parts of them, whose numbers are below `end`.
void remove_files(const std::string& directory, uint64_t end = UINT64_MAX);

// Moves them all to another folder, whose own are removed.
void move_files(const std::string& directory, const std::string& to);

// Throws Error where the file is damaged or of another version.
engine::State read_state(const std::string& directory, uint64_t number);
// Whole, or not at all; with `is_synced` also where the host is lost. Returns its bytes. Throws
// Error where there is no room.
uint64_t write_state(const std::string& directory, uint64_t number, const engine::State& state,
                     bool is_synced);

// A thread that replaces logs by states when they have grown: when they are `min_bytes`, or twice
// the state.
class Compactor {
 public:
  // Applies the whole log of a number to a state; throws Error.
  using ApplyLog = std::function<void(uint64_t number, engine::State* state)>;
  using Fail = std::function<void(const std::string& reason)>;  // by the thread, which ends then
  // Begins with the state `first`, which has so many bytes.
  Compactor(std::string directory, uint64_t first, uint64_t state_bytes, uint64_t min_bytes,
            bool is_synced, ApplyLog apply, Fail fail);
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;
  ~Compactor();  // a state that is being written is finished

  // Logs before `end` are closed, and have so many bytes more.
  void add(uint64_t end, uint64_t num_bytes);

 private:
  void run();

  const std::string directory_;
  const uint64_t min_bytes_;
  const bool is_synced_;
  const ApplyLog apply_;
  const Fail fail_;
  // Of the thread.
  uint64_t first_;  // the newest state's number
  uint64_t state_bytes_;
  // Of both.
  std::mutex mutex_;
  std::condition_variable condition_;
  uint64_t end_ = 0;
  uint64_t num_bytes_ = 0;  // of logs that no state holds
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tengen::store
