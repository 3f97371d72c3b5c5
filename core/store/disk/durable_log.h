#pragma once
// Keeps an engine's log on a disk, so that a store can go on after its host was lost. It goes on
// from its last checkpoint: only there do the rows of the disk agree with the log.
//
// `log-<n>` are files of frames, see log_file.h; `state-<n>` replaces all logs before log-<n>;
// `state-mark` says up to where the logs must be whole.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/disk/disk_file.h"
#include "store/disk/log_file.h"
#include "store/disk/state_files.h"
#include "store/state/log.h"
#include "store/state/state.h"

namespace tengen::store {

// Thread-safe. After an error, which trouble() tells, nothing more is on the disk until resume();
// what happens meanwhile is in memory.
class DurableLog {
 public:
  // The state of a folder's last checkpoint; none where it has none. What a lost host left half
  // written behind that checkpoint is ignored. Throws Error where a checkpoint that somebody was
  // told of is damaged, or of another version; the files stay.
  static std::optional<engine::State> load(const std::string& directory);

  // A folder's last checkpoint; none where it has none. Throws Error as load() does.
  struct Last {
    uint64_t state;  // the number of the state before it
    LogPlace end;    // behind its mark
    LogMark mark;
    std::vector<std::byte> saved;  // records of chunks, as in the mark's frame
  };
  static std::optional<Last> find_last(const std::string& directory);

  // Begins with `state`. A checkpoint that the folder has stays its last one until the next is
  // made. A log of `log_bytes` is closed by the next mark; that many bytes of logs are replaced by
  // a state. `is_exact`: nobody is told of a checkpoint before the folder's LastMark, on the disk,
  // tells of it. Throws Error where there is no room.
  DurableLog(std::string directory, const engine::State& state, uint64_t log_bytes = kLogBytes,
             bool is_exact = false);
  static constexpr uint64_t kLogBytes = uint64_t{64} << 20;
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;
  ~DurableLog();  // the files stay

  enum class Append {
    kDone,
    kTrouble,   // see trouble(); resume() ends it
    kNoMemory,  // nothing was appended: these records must come again, before others
  };
  // Appends records. Writes them now and then, but does not wait for the disk.
  Append append(std::span<const std::byte> records) noexcept;
  // The position behind all records so far.
  uint64_t position();
  // Makes a checkpoint of all records before `position`, which began at `begun_us`. `records` say
  // where chunks were saved since, or hold the steps of chunks that were not saved. Precondition:
  // the rows that they name are synced. Blocks until the checkpoint is on the disk; returns whether
  // it is.
  bool mark(uint64_t position, int64_t begun_us, std::span<const std::byte> records) noexcept;
  // Goes on after an error: writes a state of all that has happened until now, and begins a log
  // behind it. The next checkpoint must begin after this call. For the thread that calls mark().
  // Returns whether there is no trouble any more, as when there was none.
  bool resume() noexcept;
  // Keeps nothing more, for good; trouble() then tells the reason.
  void give_up(const std::string& reason) noexcept;
  bool is_over();
  // The error; empty: none.
  std::string trouble();
  const std::string& directory() const { return directory_; }

 private:
  std::shared_ptr<DiskFile> make_log(uint64_t number, uint64_t position) const;
  void close_long_log();
  void write_records();
  void write_frame(FrameKind kind, std::span<const std::byte> payload);
  void fail(const std::string& reason);
  void begin_compactor(uint64_t state_bytes);
  void take_in();
  engine::State read_written();
  void apply_rest();

  const std::string directory_;
  const uint64_t log_bytes_;
  const bool is_exact_;
  const uint64_t writer_;  // see LogHeader
  std::mutex mutex_;
  uint64_t first_;                  // number of the first file since the last error
  uint64_t number_;                 // number of the log that is being written
  std::shared_ptr<DiskFile> file_;  // it; null while the log before it is closed
  uint64_t num_bytes_ = 0;          // of it
  std::vector<std::byte> records_;  // not written to the file yet
  uint64_t position_ = 0;
  struct Closed {
    uint64_t end;  // position
    uint64_t number;
    uint64_t num_bytes;
  };
  std::vector<Closed> closed_;  // logs with records behind the last checkpoint
  bool has_mark_ = false;
  LastMarkFile last_mark_;  // used by the thread that calls mark()
  std::string trouble_;
  bool is_over_ = false;
  // After an error the log continues from this state; see resume(). The records in rest_, and then
  // those in records_, are not applied to it yet. Used by the thread that calls resume().
  std::optional<engine::State> behind_;
  std::vector<std::byte> rest_;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
