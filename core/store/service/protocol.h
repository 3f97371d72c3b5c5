#pragma once
// What a client and the server of a host say to each other: one memory a session, with a ring of
// requests and a ring of replies, and one socket, whose bytes wake the other side and whose end
// tells its death.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/ring.h"

namespace tengen::store {

// Raised by every change of what lies in a session's memory.
constexpr uint32_t kProtocolVersion = 3;

// Whether a side must be woken. A side that naps looks by itself within a millisecond, so that only
// a side that waits for its answer need wake it.
constexpr uint32_t kAwake = 0;
constexpr uint32_t kNaps = 1;
constexpr uint32_t kSleeps = 2;

struct SessionHeader {
  std::atomic<uint32_t> version;
  // Written by the server: how many requests have taken effect, and what the next one waits for.
  // That text is whole where reason_edits is even, and the same before and after the text is read.
  alignas(64) std::atomic<uint64_t> num_applied;
  std::atomic<uint32_t> reason_edits;
  std::atomic<uint32_t> reason_words[32];  // text, ended by a zero
  std::atomic<uint32_t> is_over;           // the server has ended the session for good
  std::atomic<uint32_t> is_taken;          // written by the client: it has mapped the memory
  // Each side sets its own before it sleeps on the socket; the other takes it and sends a byte. A
  // client never naps.
  alignas(64) std::atomic<uint32_t> client_sleeps;
  alignas(64) std::atomic<uint32_t> server_sleeps;
};

// The two rings lie behind the header.
struct SessionLayout {
  uint32_t request_bytes = 0;  // powers of two
  uint32_t reply_bytes = 0;

  static constexpr uint64_t kHeaderBytes = (sizeof(SessionHeader) + 63) / 64 * 64;
  uint64_t num_bytes() const {
    return kHeaderBytes + transport::Ring::num_bytes(request_bytes) +
           transport::Ring::num_bytes(reply_bytes);
  }
  transport::Ring requests(std::byte* memory) const {
    return {memory + kHeaderBytes, request_bytes};
  }
  transport::Ring replies(std::byte* memory) const {
    return {memory + kHeaderBytes + transport::Ring::num_bytes(request_bytes), reply_bytes};
  }
};

// The last messages are used over streams alone; see net_protocol.h.
enum class Request : uint32_t {
  kTakeSlots,
  kAppend,
  kInsert,
  kRelease,
  kSample,
  kAck,
  kGiveBack,
  kKeep,
  kLetGo,
  kSteps,
  kFlush,
  kShipped,
};
enum class Reply : uint32_t {
  kSlots,
  kBatch,
  kError,
  kFlushed,
  kWaits,
  kRow,
  kState,
  kLog,
  kMark,
};

// Messages: one of these, and behind it the arrays that it counts.
struct TakeSlots {
  Request kind = Request::kTakeSlots;
  uint32_t count = 0;
};
struct Append {
  Request kind = Request::kAppend;
  uint32_t slot = 0;
};
struct InsertMessage {
  Request kind = Request::kInsert;
  uint32_t num_priorities = 0;  // double each
  uint32_t table = 0;
  uint32_t version = 0;
  uint64_t sequence = 0;
  uint64_t first = 0;
  uint32_t count = 0;
  uint32_t stride = 0;
  uint32_t num_steps = 0;
  uint32_t padding = 0;
};
struct Release {
  Request kind = Request::kRelease;
  uint32_t padding = 0;
  uint64_t first = 0;
};
struct SampleMessage {
  Request kind = Request::kSample;
  uint32_t padding = 0;
};
struct Ack {
  Request kind = Request::kAck;
  uint32_t num_priorities = 0;  // double each
  uint64_t lease = 0;
};
struct GiveBack {
  Request kind = Request::kGiveBack;
  uint32_t padding = 0;
  uint64_t lease = 0;
};
struct Keep {
  Request kind = Request::kKeep;
  uint32_t padding = 0;
  uint64_t lease = 0;
};
struct LetGo {
  Request kind = Request::kLetGo;
  uint32_t padding = 0;
  uint64_t lease = 0;
};
struct Slots {
  Reply kind = Reply::kSlots;
  uint32_t count = 0;  // uint32_t each
};
struct Batch {
  Reply kind = Reply::kBatch;
  uint32_t num_samples = 0;  // an int64_t key each, then a double probability each
  uint64_t lease = 0;
  uint64_t table_size = 0;
  uint32_t num_pieces = 0;  // engine::Piece each
  uint32_t padding = 0;
};
struct ErrorReply {
  Reply kind = Reply::kError;
  uint32_t num_bytes = 0;  // of text
};

}  // namespace tengen::store
