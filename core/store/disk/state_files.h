#pragma once
// Files from which another process resumes: `state-<n>` holds the contents of all logs before
// log-<n> in few records.

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

// Incremented with every change of a record or of the files.
constexpr uint64_t kStateVersion = 6;
// The text of an error about a damaged file: the rule that the file breaks, and the advice.
constexpr const char* kMustBeWhole =
    "is damaged; check the disk, and restore a copy of the folder, or remove "
    "it";
// Throws Error unless `version` of the file `path` is kStateVersion.
void check_version(uint64_t version, const std::string& path);

std::string state_path(const std::string& directory, uint64_t number);
std::string log_path(const std::string& directory, uint64_t number);
// Returns the numbers of a folder's state files, the newest first.
std::vector<uint64_t> state_numbers(const std::string& directory);
// Returns a number greater than the number of any file in the folder.
uint64_t next_number(const std::string& directory);
// Removes states, logs and partial files with numbers in [begin, end).
void remove_files(const std::string& directory, uint64_t begin, uint64_t end = UINT64_MAX);

// Return the records in a state file, and the state that they describe. Throw Error if the file is
// damaged or has an unsupported version.
std::vector<std::byte> read_state_records(const std::string& directory, uint64_t number);
engine::State read_state(const std::string& directory, uint64_t number);
// Writes a state file atomically. With `is_synced`, the write is atomic even if the host crashes.
// Returns the file's size in bytes. Throws Error if there is no space.
uint64_t write_state(const std::string& directory, uint64_t number, const engine::State& state,
                     bool is_synced);

// A thread that replaces logs with a state file when the logs reach `min_bytes`, or twice the size
// of the last state if that is more.
class Compactor {
 public:
  // Applies the complete log `number` to `state`. Throws Error.
  using ApplyLog = std::function<void(uint64_t number, engine::State* state)>;
  using Fail = std::function<void(const std::string& reason)>;  // called once, on an error
  // `first` is the number of the newest state, and `state_bytes` its size.
  Compactor(std::string directory, uint64_t first, uint64_t state_bytes, uint64_t min_bytes,
            bool is_synced, ApplyLog apply, Fail fail);
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;
  ~Compactor();  // completes a state that is being written

  // Reports that all logs before number `end` are closed. `num_bytes` counts the bytes of the logs
  // that were closed since the last call.
  void add(uint64_t end, uint64_t num_bytes);

 private:
  void run();

  const std::string directory_;
  const uint64_t min_bytes_;
  const bool is_synced_;
  const ApplyLog apply_;
  const Fail fail_;
  // Only for the compactor's thread.
  uint64_t first_;  // the newest state's number
  uint64_t state_bytes_;
  // Shared; guarded by the mutex.
  std::mutex mutex_;
  std::condition_variable condition_;
  uint64_t end_ = 0;
  uint64_t num_bytes_ = 0;  // bytes of logs that no state has replaced
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace tengen::store
