#pragma once
// The open segment: an append-only file of CRC'd frames, durable frame by frame.
//
// File: magic "TENGENJL", u32 schema, u32 meta length, u32 CRC-32C of all of those and the meta,
// meta (JSON text), then frames of "TNGF", u32 length, u32 CRC-32C of length and payload,
// payload. All little-endian. The file appears under its name only with its header durable.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/platform.h"
#include "records/game_sink.h"

namespace tengen {

inline constexpr uint32_t kJournalSchema = 2;

// Thrown for a file of a schema that this build does not read.
class SchemaError : public Error {
 public:
  using Error::Error;
};

// Appends frames from many threads. One writer thread writes whatever has gathered and syncs it
// once (group commit), so that callers never wait for the disk unless they ask to by flush().
class Journal {
 public:
  // Creates the file at `path`, which must not exist. Callers of append() wait while more than
  // `max_queue_bytes` of payload are not yet durable. Throws Error.
  Journal(const std::string& path, const std::string& meta, uint64_t max_queue_bytes = 64 << 20);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // As close(), but a failure is lost: call close() where frames matter.
  ~Journal();

  // Enqueues one frame of 1 byte to 1 GiB. Thread-safe. Blocks while the queue is full. Throws
  // what a write failed with, until a flush() succeeds: this frame is then not taken, and those
  // taken before are kept.
  void append(std::string payload);
  // Blocks until every frame taken so far is durable. After a failure tries again to write what
  // is kept. Throws Error with the disk's reason, DiskFullError where it is full; the frames stay
  // queued.
  void flush();
  // flush(), then no more frames. Idempotent.
  void close();

  uint64_t num_appended() const;
  // Frames that survive a power cut: the first num_durable() taken.
  uint64_t num_durable() const;
  const std::string& path() const { return path_; }

 private:
  void write_loop();
  std::exception_ptr write_group(const std::deque<std::string>& group);

  const std::string path_;
  const uint64_t max_queue_bytes_;
  File file_;
  uint64_t size_bytes_ = 0;  // of the durable part; the writer thread's alone

  mutable std::mutex mutex_;
  std::condition_variable to_writer_;
  std::condition_variable to_callers_;
  std::deque<std::string> queue_;
  uint64_t queue_bytes_ = 0;
  uint64_t num_appended_ = 0;
  uint64_t num_durable_ = 0;
  std::exception_ptr error_;  // why the last write failed, null where it did not
  bool closing_ = false;
  std::thread writer_;
};

// Bytes of a journal that are no whole frame. At the tail they are what a kill cut short and
// were never reported durable; before whole frames they are damage, or a group that lost power
// with its pages written out of order.
struct JournalGap {
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
  bool is_tail = false;
};

struct JournalContents {
  std::string meta;
  std::vector<std::string> frames;  // every whole one, in the order of the file
  std::vector<JournalGap> gaps;
};

// Reads a journal and changes nothing; the one that is being written may end in a gap. Throws
// Error for a file that is not a journal or has a damaged header, SchemaError for another schema.
JournalContents read_journal(const std::string& path);

// Keeps games in a journal.
class JournalSink : public GameSink {
 public:
  explicit JournalSink(Journal* journal) : journal_(journal) {}
  void put(const GameRecord& record) override { journal_->append(encode(record)); }

 private:
  Journal* journal_;
};

}  // namespace tengen
