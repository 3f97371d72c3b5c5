#pragma once
// A replica of a store on another host, and the protocol between store and replica over a stream. A
// replica is a folder that always contains a complete checkpoint of that store. If the store's host
// crashes, a new store can resume from the folder.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/disk/durable_log.h"
#include "store/disk/row_file.h"
#include "store/session/messages.h"
#include "transport/shared_memory.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// A row of a checkpoint, at index `place` in the pool's file.
struct Row {
  uint32_t pool = 0;
  uint32_t place = 0;
  uint32_t checksum = 0;  // CRC-32C of the row
  auto operator<=>(const Row&) const = default;
};

// The first message to a replica; records, rows and marks follow, and a mark makes a checkpoint of
// all data before it. Followed by a uint64_t row size per pool and the records.
struct StateMessage {
  Reply kind = Reply::kState;
  uint32_t num_bytes = sizeof(StateMessage);
  uint64_t num_pools = 0;
  uint64_t record_bytes = 0;
};
// The reply to a StateMessage. Followed by an array of Row: the rows that the replica lacks.
struct Lacks {
  Request kind = Request::kLacks;
  uint32_t num_bytes = sizeof(Lacks);
  uint64_t count = 0;
};
// A row for the replica. Followed by the bytes of the row.
struct RowMessage {
  Reply kind = Reply::kRow;
  uint32_t num_bytes = sizeof(RowMessage);
  Row row;
};
// Followed by the log's records after the state or the previous RecordsMessage.
struct RecordsMessage {
  Reply kind = Reply::kRecords;
  uint32_t num_bytes = sizeof(RecordsMessage);
  uint64_t record_bytes = 0;
};
// A checkpoint. Followed by the records in the mark's own frame, which describe chunks. The
// position in `mark` counts the bytes of records since the state. The replica replies with Shipped
// when the checkpoint is on its disk. It also sends one Shipped at the start.
struct MarkMessage {
  Reply kind = Reply::kMark;
  uint32_t num_bytes = sizeof(MarkMessage);
  LogMark mark{};
  uint64_t record_bytes = 0;
};
struct Shipped {
  Request kind = Request::kShipped;
  uint32_t num_bytes = sizeof(Shipped);
};

// A folder that follows a store. Writes the store's records to its own log, and the store's rows to
// the same positions. If the replica's process is killed at any time, the folder still has the last
// checkpoint that the replica acknowledged. Rows of the next checkpoint may already have replaced
// some of its rows. The store has since removed the items of these rows, so a store that resumes
// from the folder finds these items damaged when it samples them, and removes them.
class Replica {
 public:
  // Throws Error if the folder cannot be used. Leaves a damaged folder unchanged.
  explicit Replica(std::string directory);

  // Returns the time at which the last checkpoint began, in microseconds since 1970 by the store's
  // clock, or none if there is no checkpoint. For any thread.
  std::optional<int64_t> begun_us();
  // Returns the age of the last checkpoint in seconds, by this host's clock. For any thread.
  std::optional<double> age_s();

  // Takes ownership of a connected stream, and receives checkpoints over it until the stream ends.
  // The folder's previous contents stay until the first checkpoint is complete. Blocks; for one
  // thread. Throws Error if the store sends an error, or the disk fails.
  void follow(int descriptor);

 private:
  struct Rows {
    std::unique_ptr<RowFile> file;
    uint64_t row_bytes = 0;
    std::vector<uint32_t> checksums;  // CRC-32C of the rows by place; 0 if unknown
  };

  bool take_state(transport::StreamSocket& from, const StateMessage& message);
  bool take_row(transport::StreamSocket& from, const Row& row);
  bool take_mark(transport::StreamSocket& from, const MarkMessage& message);
  std::vector<Row> find_lacking(const engine::State& state);
  uint32_t& checksum_of(const Row& row);
  bool has(const Row& row);

  const std::string directory_;
  std::mutex mutex_;
  std::optional<int64_t> begun_us_;
  // Only for the thread in follow().
  std::vector<std::byte> records_;  // the last message's records
  std::map<uint32_t, Rows> rows_;   // rows by pool
  bool has_new_rows_ = false;
  std::optional<transport::SharedMemory> buffer_;  // buffer for one row
  std::optional<DurableLog> log_;                  // log of the current connection
};

}  // namespace tengen::store
