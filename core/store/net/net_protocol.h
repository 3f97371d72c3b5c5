#pragma once
// What a client on another host and the store's gateway say to each other over a stream: the
// messages of protocol.h, one behind another, and those that only a stream needs. Numbers are
// little-endian on both sides.

#include <bit>
#include <cstdint>

#include "store/disk/log_file.h"
#include "store/service/protocol.h"

namespace tengen::store {

static_assert(std::endian::native == std::endian::little, "messages travel as they lie in memory");

// Steps of the writer's chunk: column after column the bytes of `num_steps` steps, which lie in one
// chunk, and their ages where columns are stacked. Where the last chunk is full they begin a new
// one.
struct Steps {
  Request kind = Request::kSteps;
  uint32_t num_steps = 0;
};
// Answered by Flushed with the same number once all earlier messages have taken effect.
struct Flush {
  Request kind = Request::kFlush;
  uint32_t padding = 0;
  uint64_t number = 0;
};
struct Flushed {
  Reply kind = Reply::kFlushed;
  uint32_t padding = 0;
  uint64_t number = 0;
};
// What the store's side waits for, until the next such message; no text: it does not wait any more.
struct Waits {
  Reply kind = Reply::kWaits;
  uint32_t num_bytes = 0;  // of text
};
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
// A Batch over a stream has no pieces: the gathered batch follows its keys and probabilities, as
// BatchLayout says.

// The most items of one insert, and bytes of a text: bounds what memory a message can take.
constexpr uint32_t kMaxItems = 1 << 16;
constexpr uint32_t kMaxTextBytes = 1 << 16;

}  // namespace tengen::store
