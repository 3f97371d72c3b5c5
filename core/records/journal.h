#pragma once
// The journal of an open segment: an append-only file of checksummed frames, one per game.
//
// File: magic "TENGENJL", u32 schema, u32 meta length, u32 CRC-32C of these fields and the meta,
// meta (JSON text), then frames of "TNGF", u32 length, u32 CRC-32C of length and payload, payload.
// All numbers are little-endian. The file gets its name only when its header is durable.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/disk_file.h"
#include "base/error.h"
#include "records/game_sink.h"

namespace tengen {

inline constexpr uint32_t kJournalSchema = 2;

// Thrown if this build cannot read the schema of a file.
class SchemaError : public Error {
 public:
  using Error::Error;
};

// A journal to which many threads append frames. One writer thread writes all queued frames with
// one fsync (group commit), so callers wait only in flush() or while the queue is full.
class Journal {
 public:
  // Creates the file at `path`, or throws Error if it exists or cannot be created. append() waits
  // while `max_queue_bytes` bytes of payload or more are not durable yet.
  Journal(const std::string& path, const std::string& meta, uint64_t max_queue_bytes = 64 << 20);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // Like close(), but ignores a write failure, which loses frames. Call close() first.
  ~Journal();

  // Queues a frame with a payload of 1 byte to 1 GiB. Thread-safe. Blocks while the queue is full.
  // After a write failure, throws the error of the write until the next flush().
  void append(std::string payload);
  // Blocks until every queued frame is durable. Retries a failed write. Throws Error with the
  // system's reason, or DiskFullError if the disk is full; the frames then stay queued.
  void flush();
  // Calls flush(). If it succeeds, ends the writer thread and rejects further frames. Idempotent.
  void close();

  uint64_t num_appended() const;
  // The number of frames, in order of append(), that survive a power failure.
  uint64_t num_durable() const;
  const std::string& path() const { return path_; }

 private:
  void write_loop();
  std::exception_ptr write_group(const std::deque<std::string>& group);

  const std::string path_;
  const uint64_t max_queue_bytes_;
  const std::unique_ptr<DiskFile> file_;
  uint64_t size_bytes_ = 0;  // size of the durable part; used only by the writer thread

  mutable std::mutex mutex_;
  std::condition_variable to_writer_;
  std::condition_variable to_callers_;
  std::deque<std::string> queue_;
  uint64_t queue_bytes_ = 0;
  uint64_t num_appended_ = 0;
  uint64_t num_durable_ = 0;
  std::exception_ptr error_;  // the last write's error, or null
  bool closing_ = false;
  std::thread writer_;
};

// Bytes of a journal that belong to no complete frame. A gap at the end is a write that was
// interrupted and never reported as durable. A gap before a complete frame is damage, or a group
// whose pages were written out of order before a power failure.
struct JournalGap {
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
  bool is_tail = false;
};

struct JournalContents {
  std::string meta;
  std::vector<std::string> frames;  // every complete frame, in file order
  std::vector<JournalGap> gaps;
};

// Reads the journal at `path`, which may end in a gap if it is being written. Throws Error if the
// file is not a journal or its header is damaged, SchemaError if it has an unsupported schema.
JournalContents read_journal(const std::string& path);

// A GameSink that appends games to a journal.
class JournalSink : public GameSink {
 public:
  explicit JournalSink(Journal* journal) : journal_(journal) {}
  void put(const GameRecord& record) override { journal_->append(encode(record)); }

 private:
  Journal* journal_;
};

}  // namespace tengen
