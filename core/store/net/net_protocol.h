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
// chunk, and their ages where columns are stacked. It is a new one where the last is full.
struct Steps {
  Request kind = Request::kSteps;
  uint32_t num_steps = 0;
};
// Answered by Flushed with the same number once all before it has taken effect.
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
// What the store's side waits for, until the next one; no text: it does not wait any more.
struct Waits {
  Reply kind = Reply::kWaits;
  uint32_t num_bytes = 0;  // of text
};
// What a replica gets of a checkpoint: rows, then the state and what is new of the logs, then the
// mark, by which it is whole. A chunk's bytes lie behind.
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
// Answered by Shipped once it is on the replica's disk; the replica begins with one too.
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
// A Batch has no pieces here: behind keys and probabilities lies the gathered batch, as BatchLayout
// says.

// Items of one insert, and bytes of a text, so that no message takes more memory than it is worth.
constexpr uint32_t kMaxItems = 1 << 16;
constexpr uint32_t kMaxTextBytes = 1 << 16;

}  // namespace tengen::store
