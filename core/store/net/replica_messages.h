#pragma once
// What a store and its replica on another host say to each other over a stream.

#include <cstdint>

#include "store/disk/log_file.h"
#include "store/session/messages.h"

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

}  // namespace tengen::store
