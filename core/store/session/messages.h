#pragma once
// The messages between the client of a session and its store, over any carrier: queues in shared
// memory, or a stream between hosts. Numbers are little-endian.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tengen::store {

static_assert(std::endian::native == std::endian::little, "messages travel as they lie in memory");

// The maximum number of items per insert, and of bytes per Text message. They bound a message's
// memory.
constexpr uint32_t kMaxItems = 1 << 16;
constexpr uint32_t kMaxTextBytes = 1 << 16;

enum class Request : uint32_t {
  kTakeSlots,
  kAppend,
  kInsert,
  kRelease,
  kSample,
  kAck,
  kGiveBack,
  kSteps = 9,  // this and the next kind are used only over streams
  kFlush,
  kLacks,  // this and the next kind come from a replica; see net/replica.h
  kShipped,
};
enum class Reply : uint32_t {
  kSlots,
  kBatch,
  kError,
  kFlushed,  // this and the next kind are used only over streams
  kWaits,
  kRow,  // this and the following kinds go to a replica; see net/replica.h
  kState,
  kRecords,
  kMark,
};

// Each message is one of these structs, followed by the arrays that it describes. A message begins
// with its kind and its total number of bytes, including the arrays.
struct MessageHead {
  uint32_t kind;
  uint32_t num_bytes;
};
struct TakeSlots {
  Request kind = Request::kTakeSlots;
  uint32_t num_bytes = sizeof(TakeSlots);
  uint32_t count = 0;
  uint32_t padding = 0;
};
struct Append {
  Request kind = Request::kAppend;
  uint32_t num_bytes = sizeof(Append);
  uint32_t slot = 0;
  uint32_t padding = 0;
};
// Inserts items. Followed by the priorities, an array of double.
struct InsertMessage {
  Request kind = Request::kInsert;
  uint32_t num_bytes = sizeof(InsertMessage);
  uint32_t table = 0;
  uint32_t unused = 0;
  uint64_t sequence = 0;
  uint64_t first = 0;
  uint32_t count = 0;
  uint32_t stride = 0;
  uint32_t num_steps = 0;
  uint32_t padding = 0;
};
struct Release {
  Request kind = Request::kRelease;
  uint32_t num_bytes = sizeof(Release);
  uint64_t first = 0;
};
struct SampleMessage {
  Request kind = Request::kSample;
  uint32_t num_bytes = sizeof(SampleMessage);
};
// Acknowledges a loan or gives it back. With kAck, followed by the priorities, an array of double.
struct OfLease {
  Request kind = Request::kAck;
  uint32_t num_bytes = sizeof(OfLease);
  uint64_t lease = 0;
};
// Grants slots to a writer. Followed by the slot indices, an array of uint32_t.
struct Slots {
  Reply kind = Reply::kSlots;
  uint32_t num_bytes = sizeof(Slots);
};
// A sampled batch. Followed by arrays: one int64_t key per sample, one double probability per
// sample, and the pieces as engine::Piece. Over a stream, the gathered steps replace the pieces.
struct Batch {
  Reply kind = Reply::kBatch;
  uint32_t num_bytes = sizeof(Batch);
  uint64_t lease = 0;
  uint64_t table_size = 0;
  uint32_t num_samples = 0;
  uint32_t padding = 0;
};
// Followed by a string. The string is an error, which ends the session, or, over a stream, the
// reason why the store makes the session wait. A reason is valid until the next one, and is empty
// if the session no longer waits.
struct Text {
  Reply kind = Reply::kError;
  uint32_t num_bytes = sizeof(Text);
};

// Messages that are used only over streams. Otherwise shared memory holds the same information.

// Followed by steps of the writer's chunk: column by column, the bytes of `num_steps` steps in one
// chunk. If the last chunk is full, these steps begin a new one.
struct Steps {
  Request kind = Request::kSteps;
  uint32_t num_bytes = sizeof(Steps);
  uint32_t num_steps = 0;
  uint32_t padding = 0;
};
// Requests a Flushed reply with the same number when all earlier messages have taken effect.
struct Flush {
  Request kind = Request::kFlush;
  uint32_t num_bytes = sizeof(Flush);
  uint64_t number = 0;
};
struct Flushed {
  Reply kind = Reply::kFlushed;
  uint32_t num_bytes = sizeof(Flushed);
  uint64_t number = 0;
};

}  // namespace tengen::store
