#pragma once
// The files of a durable log, which are frames with checksums, and the mark up to which the log is
// known to be on disk.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/disk_file.h"

namespace tengen::store {

// The header of a log file.
struct LogHeader {
  uint64_t version;
  uint64_t writer;    // a random number above 0 that identifies the DurableLog
  uint64_t position;  // position of its first record among all record bytes of the writer
  uint64_t checksum;  // CRC-32C of the fields above
};

// The kinds of frames. Their values are unlikely to occur by chance in damaged data.
enum class FrameKind : uint32_t { kRecords = 0x44524352, kMark = 0x4b52414d };

// The header of a frame. The payload follows: either records, or a LogMark and records.
struct FrameHead {
  FrameKind kind;
  uint32_t checksum;  // CRC-32C of writer, offset, the other fields, and payload
  uint64_t num_bytes;
};

// A checkpoint. It contains all records before `position`, and the records in the mark's own frame,
// which belong to chunks that were saved while the checkpoint was made.
struct LogMark {
  uint64_t position;
  int64_t begun_us;  // start time in microseconds since 1970
};

// Returns the current time, in microseconds since 1970.
inline int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// A position in a store's logs, after a frame.
struct LogPlace {
  uint64_t number = 0;  // number of the file
  uint64_t writer = 0;  // from the log's header; another store's log may have its number
  uint64_t offset = 0;  // offset in the file
};

struct LogFrame {
  FrameKind kind;
  std::span<const std::byte> payload;  // valid until the next frame is read
};

// Reads the frames of a log that another thread or process may still write. Not thread-safe.
class LogReader {
 public:
  // Throws Error if the file cannot be opened, has an unsupported version, or has a damaged header.
  explicit LogReader(const std::string& path);

  // Whether the log has a header. A log without a header was left by a host crash.
  bool is_begun() const { return header_.version != 0; }
  const LogHeader& header() const { return header_; }
  // Returns the next frame, or none if the frame does not exist yet or is incomplete.
  std::optional<LogFrame> next();
  // The offset of the next frame in the file.
  uint64_t offset() const { return offset_; }
  // Whether the file ends at offset().
  bool is_at_end() const { return offset_ >= file_.num_bytes(); }
  // Returns the number of complete marks, at most two, after the next frame, which is incomplete.
  int num_marks_behind() const;

 private:
  // Reads bytes at `offset` into `to`. Throws Error if the file ends before them.
  void read(uint64_t offset, std::span<std::byte> to) const;
  // Reads the frame at `offset`, which must end before `end`. Returns whether it is complete.
  bool read_frame(uint64_t offset, uint64_t end, FrameHead* head,
                  std::vector<std::byte>* payload) const;

  const DiskFile file_;
  LogHeader header_{};
  uint64_t offset_ = 0;
  std::vector<std::byte> payload_;
};

// Reads one writer's consecutive logs, from a state to the newest frame. Not thread-safe, but a
// store may write the logs in the meantime.
class LogTail {
 public:
  // `directory` is the folder of a DurableLog.
  explicit LogTail(std::string directory) : directory_(std::move(directory)) {}

  // Begins at the start of a log. Throws Error if it cannot be read.
  void begin(uint64_t number);
  // The number of the log that is being read.
  uint64_t number() const { return number_; }
  const LogReader& log() const { return *log_; }
  // The position after the records that have been read.
  uint64_t position() const { return position_; }
  // The place in the logs after the last frame that was read.
  LogPlace place() const { return {number_, log_->header().writer, log_->offset()}; }
  // Returns the next frame, or none if the frame does not exist yet or is incomplete. Throws Error
  // if later data proves that the frame is damaged.
  std::optional<LogFrame> next();
  // Whether the next log was removed before it was read, because a state has replaced it.
  bool is_lost() const { return is_lost_; }

 private:
  std::optional<LogFrame> next_of_log();

  const std::string directory_;
  uint64_t number_ = 0;
  std::unique_ptr<LogReader> log_;
  uint64_t position_ = 0;
  bool is_lost_ = false;
};

// Returns the LogMark of a frame, if it is a mark. Sets `saved` to the records after the mark.
std::optional<LogMark> mark_of(const LogFrame& frame, std::span<const std::byte>* saved);

// Return the checksum of a log header, and of a frame at `offset` in a writer's log.
uint64_t checksum_of(const LogHeader& header);
uint32_t checksum_of(uint64_t writer, uint64_t offset, const FrameHead& head,
                     std::span<const std::byte> payload);

// The file `state-mark` of a folder: the position up to which the folder's logs are known to be on
// disk. A log that is incomplete before that position is damaged; after it, a host crash may leave
// a log incomplete.
struct LastMark {
  LogPlace end;  // the end of a mark that was synced; writer 0 if there is none
  // Whether `end` is the last mark that was reported as complete. If false, a later mark may have
  // been reported too. A mark is written only if the previous one is on disk, so two marks after an
  // incomplete frame prove damage.
  bool is_exact = false;
};

// Reads the file `state-mark`. Returns none if the file does not exist. Throws Error if it is
// damaged or has an unsupported version.
std::optional<LastMark> read_last_mark(const std::string& directory);

// Writes the file `state-mark`. Not thread-safe.
class LastMarkFile {
 public:
  // An existing file stays until put() replaces it.
  explicit LastMarkFile(std::string directory) : directory_(std::move(directory)) {}
  ~LastMarkFile();  // syncs the file if possible

  // Writes a mark. Blocks until the file is on disk if the mark is exact, or if this is the first
  // call. Precondition: the log is on disk up to `mark`. Throws Error if there is no space; the
  // next call then counts as the first call.
  void put(const LastMark& mark);

 private:
  const std::string directory_;
  std::unique_ptr<DiskFile> file_;  // set when the file is on disk under its name
};

}  // namespace tengen::store
