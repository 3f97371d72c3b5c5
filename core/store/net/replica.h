#pragma once
// A replica of a store on another host: a folder that has a whole checkpoint of that store at any
// instant, from which a store goes on when the host is lost; and what the two say to each other
// over a stream.

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

// A row of a checkpoint, in a place of the disk.
struct Row {
  uint32_t pool = 0;
  uint32_t place = 0;
  uint32_t checksum = 0;  // CRC-32C
  auto operator<=>(const Row&) const = default;
};

// A replica gets a state, with which it begins, and then records and rows. A mark makes a
// checkpoint of them. The size of each pool's rows, uint64_t each, and records follow a state.
struct StateMessage {
  Reply kind = Reply::kState;
  uint32_t num_bytes = sizeof(StateMessage);
  uint64_t num_pools = 0;
  uint64_t record_bytes = 0;
};
// The answer to a state: the rows of it that the replica lacks, a Row each, follow.
struct Lacks {
  Request kind = Request::kLacks;
  uint32_t num_bytes = sizeof(Lacks);
  uint64_t count = 0;
};
// The bytes of the row follow.
struct RowMessage {
  Reply kind = Reply::kRow;
  uint32_t num_bytes = sizeof(RowMessage);
  Row row;
};
// Records of the log follow, those behind the state or behind the last records.
struct RecordsMessage {
  Reply kind = Reply::kRecords;
  uint32_t num_bytes = sizeof(RecordsMessage);
  uint64_t record_bytes = 0;
};
// A LogMark, whose position counts the bytes of records since the state; the records of chunks that
// lie in the mark's own frame follow. Answered by Shipped once the checkpoint is on the replica's
// disk; the replica sends a Shipped first of all, too.
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

// Writes the store's records to a log of its own, and its rows where the store has them. At
// whatever instant the replica's process is killed, the folder has the last checkpoint that the
// replica acknowledged. Rows of the next checkpoint may already have replaced some of its rows. The
// items of those rows have been removed from the store since; a store that goes on here finds them
// damaged, and removes them, when it draws them.
class Replica {
 public:
  // Throws Error where the folder cannot be used; a damaged folder stays as it is.
  explicit Replica(std::string directory);

  // When the last checkpoint began, in microseconds since 1970 by the store's clock; none where
  // there is none. For any thread.
  std::optional<int64_t> begun_us();
  // How many seconds ago that was, by this host's clock. For any thread.
  std::optional<double> age_s();

  // Receives checkpoints over a connected stream, which it takes over, until the stream ends. What
  // the folder had stays until the first of them is whole. Blocks; for one thread. Throws Error
  // where the store sends an error, or the disk refuses.
  void follow(int descriptor);

 private:
  struct Rows {
    std::unique_ptr<RowFile> file;
    uint64_t row_bytes = 0;
    std::vector<uint32_t> checksums;  // by place, of rows that are known; 0: not known
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
  // Used by the thread that follows.
  std::vector<std::byte> records_;  // received last
  std::map<uint32_t, Rows> rows_;   // by pool
  bool has_new_rows_ = false;
  std::optional<transport::SharedMemory> buffer_;  // for a row
  std::optional<DurableLog> log_;                  // of this connection
};

}  // namespace tengen::store
