#pragma once
// What a store and its replica on another host say to each other over a stream.

#include <cstdint>

#include "store/disk/log_file.h"
#include "store/session/messages.h"

namespace tengen::store {

// A replica gets a checkpoint as rows, then perhaps a state, then the new parts of the logs, and
// last the mark, which makes it whole. This is a row; the chunk's bytes follow.
struct RowMessage {
  Reply kind = Reply::kRow;
  uint32_t pool = 0;
  uint64_t place = 0;
  uint64_t num_bytes = 0;
};
// A whole state-<n>, where the replica begins anew.
struct StateMessage {
  Reply kind = Reply::kState;
  uint32_t padding = 0;
  uint64_t number = 0;
  uint64_t num_bytes = 0;
};
// A part of log-<n>.
struct LogMessage {
  Reply kind = Reply::kLog;
  uint32_t padding = 0;
  uint64_t number = 0;
  uint64_t offset = 0;
  uint64_t num_bytes = 0;
};
// Answered by Shipped once the checkpoint is on the replica's disk; the replica sends a Shipped
// first of all, too.
struct MarkMessage {
  Reply kind = Reply::kMark;
  uint32_t padding = 0;
  LogPlace end;
  LogMark mark{};
};
struct Shipped {
  Request kind = Request::kShipped;
  uint32_t padding = 0;
};

}  // namespace tengen::store
