#pragma once
// Stores an engine's log on disk, so that a store can resume after its host has crashed. The store
// resumes from its last checkpoint, because only there do the rows on disk agree with the log.
//
// `log-<n>` are files of frames, see log_file.h. `state-<n>` replaces all logs before log-<n>.
// `state-mark` is the position up to which the logs must be complete.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/disk_file.h"
#include "store/disk/log_file.h"
#include "store/disk/state_files.h"
#include "store/state/log.h"
#include "store/state/state.h"

namespace tengen::store {

// Writes an engine's records and checkpoints to disk. Thread-safe. After an error, which trouble()
// returns, writes nothing to disk until resume(). Changes made in the meantime are held in memory.
class DurableLog {
 public:
  // Returns the state at the folder's last checkpoint, or none if there is no checkpoint. Ignores
  // incomplete data after that checkpoint, which a host crash may leave. If a checkpoint that was
  // reported as complete is damaged or has an unsupported version, throws Error and keeps files.
  static std::optional<engine::State> load(const std::string& directory);

  // Returns the last checkpoint of a folder, or none if it has none. Throws Error as load() does.
  struct Last {
    uint64_t state;  // number of the state file before it
    LogPlace end;    // the position after its mark
    LogMark mark;
    std::vector<std::byte> saved;  // records of chunks, as in the mark's frame
  };
  static std::optional<Last> find_last(const std::string& directory);

  // Begins with `state`. An existing checkpoint in the folder stays the last one until the next
  // checkpoint is made. When a log reaches `log_bytes`, the next mark closes it. When all logs
  // together reach that size, a state replaces them. `is_exact` says that no checkpoint is reported
  // as complete before the folder's LastMark on disk includes it. Throws Error without space.
  DurableLog(std::string directory, const engine::State& state, uint64_t log_bytes = kLogBytes,
             bool is_exact = false);
  static constexpr uint64_t kLogBytes = uint64_t{64} << 20;
  DurableLog(const DurableLog&) = delete;
  DurableLog& operator=(const DurableLog&) = delete;
  ~DurableLog();  // the files stay

  enum class Append {
    kDone,
    kTrouble,   // see trouble(); resume() clears it
    kNoMemory,  // nothing was appended: append these records again before others
  };
  // Appends records. Writes them to the log from time to time, without fsync.
  Append append(std::span<const std::byte> records) noexcept;
  // Returns the position after all records appended so far.
  uint64_t position();
  // Makes a checkpoint of all records before `position`, which began at time `begun_us`. `records`
  // give the rows of chunks that were saved since, or hold the steps of chunks that were not saved.
  // Precondition: these rows are synced. Returns true when the checkpoint is on disk, false if that
  // fails.
  bool mark(uint64_t position, int64_t begun_us, std::span<const std::byte> records) noexcept;
  // Continues after an error: writes a state that includes everything up to now, and begins a new
  // log. The next checkpoint must begin after this call. Only for the thread that calls mark().
  // Returns whether the log works now; true also if there was no error.
  bool resume() noexcept;
  // Stops the log permanently. trouble() then returns `reason`, or an earlier error.
  void give_up(const std::string& reason) noexcept;
  bool is_over();
  // Returns the error that stopped the log, or an empty string.
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
  const uint64_t writer_;  // a random number that identifies this log's writer; see LogHeader
  std::mutex mutex_;
  uint64_t first_;                  // number of the first file since the last error
  uint64_t number_;                 // number of the log that is being written
  std::shared_ptr<DiskFile> file_;  // its file; null while the previous log is being closed
  uint64_t num_bytes_ = 0;          // bytes in the log file
  std::vector<std::byte> records_;  // records that are not yet written to the file
  uint64_t position_ = 0;
  struct Closed {
    uint64_t end;  // position after the log's last record
    uint64_t number;
    uint64_t num_bytes;
  };
  std::vector<Closed> closed_;  // logs with records after the last checkpoint
  bool has_mark_ = false;
  LastMarkFile last_mark_;  // used by the thread that calls mark()
  std::string trouble_;
  bool is_over_ = false;
  // After an error, the log continues from this state; see resume(). The records in rest_ and then
  // the records in records_ must still be applied to it. Only for the thread that calls resume().
  std::optional<engine::State> behind_;
  std::vector<std::byte> rest_;
  std::optional<Compactor> compactor_;
};

}  // namespace tengen::store
