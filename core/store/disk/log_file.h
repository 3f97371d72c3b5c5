#pragma once
// The files of a durable log: frames, each with a checksum, one behind another, and the mark of
// what is known to be on the disk.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/disk/disk_file.h"

namespace tengen::store {

// What a log begins with.
struct LogHeader {
  uint64_t version;
  uint64_t writer;    // a random number of the DurableLog that wrote it, above 0
  uint64_t position;  // of its first record, among all record bytes of the writer
  uint64_t checksum;  // CRC-32C of what is before it
};

// Values that hardly occur by chance.
enum class FrameKind : uint32_t { kRecords = 0x44524352, kMark = 0x4b52414d };

// What a frame begins with; the payload lies behind: records, or a LogMark and records.
struct FrameHead {
  FrameKind kind;
  uint32_t checksum;  // CRC-32C of its log's writer, its offset there, this without it, the payload
  uint64_t num_bytes;
};

// A checkpoint: records before `position` are part of it, and so are the records in the mark's own
// frame, of chunks that were saved while the checkpoint was made.
struct LogMark {
  uint64_t position;
  int64_t begun_us;  // when it began, since 1970
};

// The time of a mark that begins now, in microseconds since 1970.
inline int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

// A place in a store's logs, behind a frame.
struct LogPlace {
  uint64_t number = 0;  // of the file
  uint64_t writer = 0;  // of its header: another store's log may have the same number
  uint64_t offset = 0;  // in it
};

struct LogFrame {
  FrameKind kind;
  std::span<const std::byte> payload;  // valid until the next frame is read
};

// Reads the frames of a log that may still be written. Not thread-safe.
class LogReader {
 public:
  // Throws Error where the file cannot be opened, is of another version, or its header is damaged.
  explicit LogReader(const std::string& path);

  // Whether the header was written; where not, the host was lost before.
  bool is_begun() const { return header_.version != 0; }
  const LogHeader& header() const { return header_; }
  // The next frame; none where it is not there yet, or not whole.
  std::optional<LogFrame> next();
  // The offset of the next frame in the file.
  uint64_t offset() const { return offset_; }
  // Whether the file ends at offset().
  bool is_at_end() const { return offset_ >= file_.num_bytes(); }
  // How many whole marks lie behind the next frame, which is not whole. Stops at two.
  int num_marks_behind() const;

 private:
  // Throws Error where the file has fewer bytes.
  void read(uint64_t offset, std::span<std::byte> to) const;
  // Reads the frame at `offset`, which must end before `end`; returns whether it is whole.
  bool read_frame(uint64_t offset, uint64_t end, FrameHead* head,
                  std::vector<std::byte>* payload) const;

  const DiskFile file_;
  LogHeader header_{};
  uint64_t offset_ = 0;
  std::vector<std::byte> payload_;
};

// Reads the logs of one writer one after another, from a state to the newest frame. Not
// thread-safe; a store may write the logs meanwhile.
class LogTail {
 public:
  // `directory` is the folder of a DurableLog.
  explicit LogTail(std::string directory) : directory_(std::move(directory)) {}

  // Begins at the start of a log. Throws Error where it cannot be read.
  void begin(uint64_t number);
  // The log that is being read.
  uint64_t number() const { return number_; }
  const LogReader& log() const { return *log_; }
  // The position behind the records that were read.
  uint64_t position() const { return position_; }
  // The place behind the last frame.
  LogPlace place() const { return {number_, log_->header().writer, log_->offset()}; }
  // The next frame; none where it is not there yet, or not whole. Throws Error where what lies
  // behind it proves damage.
  std::optional<LogFrame> next();
  // Whether the next log was replaced by a state before it was read.
  bool is_lost() const { return is_lost_; }

 private:
  std::optional<LogFrame> next_of_log();

  const std::string directory_;
  uint64_t number_ = 0;
  std::unique_ptr<LogReader> log_;
  uint64_t position_ = 0;
  bool is_lost_ = false;
};

// The LogMark of a frame; none where the frame is no mark. `saved` becomes the records behind the
// mark.
std::optional<LogMark> mark_of(const LogFrame& frame, std::span<const std::byte>* saved);

// The checksum of a header, and of a frame at an offset of a writer's log.
uint64_t checksum_of(const LogHeader& header);
uint32_t checksum_of(uint64_t writer, uint64_t offset, const FrameHead& head,
                     std::span<const std::byte> payload);

// The file `state-mark` of a folder: up to which place the folder's logs are known to be on the
// disk. A log that is not whole before that place is damaged; behind it a lost host may have left a
// log half written.
struct LastMark {
  LogPlace end;  // behind a mark that was synced; with writer 0 no mark was
  // Whether nobody was told of a later mark. Where false, somebody may have been. A mark is written
  // only when the mark before it is on the disk; so two marks behind a torn frame show damage.
  bool is_exact = false;
};

// Returns none where a folder has no such file. Throws Error where the file is damaged or of
// another version.
std::optional<LastMark> read_last_mark(const std::string& directory);

// Writes the file. Not thread-safe.
class LastMarkFile {
 public:
  // A file that is there stays until put().
  explicit LastMarkFile(std::string directory) : directory_(std::move(directory)) {}
  ~LastMarkFile();  // syncs the file, if that is possible

  // Writes a mark. The first time, and an exact one, blocks until the file is on the disk.
  // Precondition: the mark that it tells of is on the disk. Throws Error where there is no room;
  // the next call is then as this one.
  void put(const LastMark& mark);

 private:
  const std::string directory_;
  std::unique_ptr<DiskFile> file_;  // once it is on the disk under its name
};

}  // namespace tengen::store
