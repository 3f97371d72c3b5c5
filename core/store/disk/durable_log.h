#pragma once
// Keeps what an engine's log says on a disk, so that a store goes on where its host was lost: up to
// its last checkpoint, as rows of a disk are then what the log says that they are.
//
// `log-<n>` are files of frames, as log_file.h says; `state-<n>` says what logs before log-<n> say;
// `state-mark` says up to where they must be whole.

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/disk/disk_file.h"
#include "store/disk/last_mark.h"
#include "store/disk/log_file.h"
#include "store/disk/state_files.h"
#include "store/engine/log.h"
#include "store/engine/state.h"

namespace tengen::store {

// Thread-safe. What goes wrong is told by trouble(); nothing more is kept then.
class DurableLog {
 public:
  // The state of the last checkpoint of a folder; none where it has none. What a host left half
  // written behind it is left out. Throws Error where a checkpoint that was told of is damaged, or
  // of another version; the files stay.
  static std::optional<engine::State> load(const std::string& directory);

  // The last checkpoint of a folder; none where it has none. Throws Error as load().
  struct Last {
    uint64_t state;  // the number of the state before it
    LogPlace end;    // behind its mark
    LogMark mark;
    std::vector<std::byte> saved;  // records of chunks, as in the mark's frame
  };
  static std::optional<Last> find_last(const std::string& directory);
  // Applies a log that is closed, and the next one there. Throws Error where it is damaged.
  static void apply_whole_log(const std::string& directory, uint64_t number, engine::State* into);

  // Begins with `state`. The checkpoint that was there before is the last one until the next. Logs
  // are files of about `log_bytes`, and as many bytes of them become a state. Throws Error where
  // there is no room.
  DurableLog(std::string directory, const engine::State& state,
             uint64_t log_bytes = uint64_t{64} << 20);
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;
  ~DurableLog();  // the files stay

  // Takes records; does not wait for the disk, but writes now and then.
  void append(std::span<const std::byte> records) noexcept;
  // Behind all records so far.
  uint64_t position();
  // A checkpoint of all before `position`, that began then; `records` say where chunks were saved
  // since, or have the steps of those that were not. Blocks until it is on the disk, as what it
  // tells of is already; whether it is.
  bool mark(uint64_t position, std::chrono::steady_clock::time_point begun_at,
            std::span<const std::byte> records) noexcept;
  // Keeps nothing more, for a reason.
  void give_up(const std::string& reason);
  // What went wrong; empty: nothing.
  std::string trouble();
  const std::string& directory() const { return directory_; }
  // The number of its first state and log.
  uint64_t first() const { return first_; }

 private:
  void begin_log();
  void write_records();
  void write_frame(FrameKind kind, std::span<const std::byte> payload);
  void fail(const std::string& reason);

  const std::string directory_;
  const uint64_t log_bytes_;
  const uint64_t writer_;  // of LogHeader
  std::mutex mutex_;
  const uint64_t first_;            // of the files of this process
  uint64_t number_;                 // of the log that is written
  std::shared_ptr<DiskFile> file_;  // it
  uint64_t num_bytes_ = 0;          // of it
  std::vector<std::byte> records_;  // that are not in it yet
  uint64_t position_ = 0;
  struct Closed {
    uint64_t end;  // position
    uint64_t number;
    uint64_t num_bytes;
  };
  std::vector<Closed> closed_;  // logs that hold more than the last checkpoint
  bool has_mark_ = false;
  LastMarkFile last_mark_;  // of the thread that marks
  std::string trouble_;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
