#pragma once
// What the client of a session and its store say to each other, whatever carries it: queues in
// shared memory, or a stream between hosts. Numbers are little-endian.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tengen::store {

static_assert(std::endian::native == std::endian::little, "messages travel as they lie in memory");

// The most items of one insert, and bytes of a text: bounds what memory a message can take.
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
  kSteps = 9,  // this and the next: over streams alone
  kFlush,
  kLacks,  // this and the next: of a replica; see net/replica.h
  kShipped,
};
enum class Reply : uint32_t {
  kSlots,
  kBatch,
  kError,
  kFlushed,  // this and the next: over streams alone
  kWaits,
  kRow,  // this and the next: to a replica; see net/replica.h
  kState,
  kRecords,
  kMark,
};

// Messages: one of these, and behind it the arrays that it speaks of. A message begins with its
// kind and its bytes, those of its arrays too.
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
// A double for each priority.
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
// Acknowledges or gives back; with kAck, a double for each priority.
struct OfLease {
  Request kind = Request::kAck;
  uint32_t num_bytes = sizeof(OfLease);
  uint64_t lease = 0;
};
// A uint32_t for each slot.
struct Slots {
  Reply kind = Reply::kSlots;
  uint32_t num_bytes = sizeof(Slots);
};
// An int64_t key for each sample, then a double probability each, then an engine::Piece for each
// piece; over a stream no pieces: the gathered batch follows the message.
struct Batch {
  Reply kind = Reply::kBatch;
  uint32_t num_bytes = sizeof(Batch);
  uint64_t lease = 0;
  uint64_t table_size = 0;
  uint32_t num_samples = 0;
  uint32_t padding = 0;
};
// An error, which ends the session; or, over a stream, what the store's side waits for, until the
// next such message. No text: it does not wait any more.
struct Text {
  Reply kind = Reply::kError;
  uint32_t num_bytes = sizeof(Text);
};

// Messages over streams alone; there shared memory tells the same.

// Steps of the writer's chunk follow: column after column the bytes of `num_steps` steps, which lie
// in one chunk. Where the last chunk is full they begin a new one.
struct Steps {
  Request kind = Request::kSteps;
  uint32_t num_bytes = sizeof(Steps);
  uint32_t num_steps = 0;
  uint32_t padding = 0;
};
// Answered by Flushed with the same number once all earlier messages have taken effect.
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
