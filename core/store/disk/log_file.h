#pragma once
// The files of a durable log: frames, each with a checksum, one behind another.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tengen::store {

// What a log begins with.
struct LogHeader {
  uint64_t version;
  uint64_t writer;    // a random number of the DurableLog that wrote it, above 0
  uint64_t position;  // of its first record, of all bytes of records of its writer
  uint64_t checksum;  // CRC-32C of what is before it
};

// Such that they are hardly found elsewhere.
enum class FrameKind : uint32_t { kRecords = 0x44524352, kMark = 0x4b52414d };

// What a frame begins with; the payload lies behind: records, or a LogMark and records.
struct FrameHead {
  FrameKind kind;
  uint32_t checksum;  // CRC-32C of its log's writer, its offset there, this without it, the payload
  uint64_t num_bytes;
};

// A checkpoint: records before `position` hold, and the ones behind it, of chunks that were saved
// while it was made.
struct LogMark {
  uint64_t position;
  int64_t begun_us;  // when it began, since 1970
};

// Behind a frame of a store's logs.
struct LogPlace {
  uint64_t number = 0;  // of the file
  uint64_t writer = 0;  // as in its header, as another store's log may have that number
  uint64_t offset = 0;  // in it
};

struct LogFrame {
  FrameKind kind;
  std::span<const std::byte> payload;  // until the next one is read
};

// Reads the frames of a log that may still be written. Not thread-safe.
class LogReader {
 public:
  // Throws Error where it cannot be opened, its header is damaged, or it is of another version.
  explicit LogReader(std::string path);
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  ~LogReader();

  // Else its host was lost before it was.
  bool is_begun() const { return header_.version != 0; }
  const LogHeader& header() const { return header_; }
  // The next whole frame; none where there is none yet, or it is torn.
  std::optional<LogFrame> next();
  // Of the next frame, in the file.
  uint64_t offset() const { return offset_; }
  // Whether nothing lies there.
  bool is_at_end() const { return offset_ >= num_bytes(); }
  // How many whole marks lie behind the next frame, which is not whole.
  int num_marks_behind() const;
  // Bytes that are in the file. Throws Error.
  void read(uint64_t offset, std::span<std::byte> to) const;

 private:
  uint64_t num_bytes() const;
  // The payload of the frame at `offset`, before `end`, goes to `payload`; whether it is whole.
  bool read_frame(uint64_t offset, uint64_t end, FrameHead* head,
                  std::vector<std::byte>* payload) const;

  const std::string path_;
  int descriptor_ = -1;
  LogHeader header_{};
  uint64_t offset_ = 0;
  std::vector<std::byte> payload_;
};

// The LogMark of a frame of that kind; none where it is of no mark. Sets what lies behind it.
std::optional<LogMark> mark_of(const LogFrame& frame, std::span<const std::byte>* saved);

// Those of a header, and of a frame of a writer's log that begins there.
uint64_t checksum_of(const LogHeader& header);
uint32_t checksum_of(uint64_t writer, uint64_t offset, const FrameHead& head,
                     std::span<const std::byte> payload);

}  // namespace tengen::store
