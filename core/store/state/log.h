#pragma once
// What happened to an engine, as records in the order in which it happened. A State is made from
// them.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "store/state/rate_limiter.h"
#include "store/state/saved.h"
#include "store/state/steps.h"

namespace tengen::store::engine {

namespace event {

enum class Kind : uint32_t {
  kTableAdded,
  kSlabsGrown,
  kSessionBegun,
  kSessionDescribed,
  kSessionProgressed,
  kSessionEnded,
  kWriterOpened,
  kWriterClosed,
  kWriterAdvanced,
  kSequenceSaved,
  kGranted,
  kAppended,
  kReleased,
  kStreamTrimmed,
  kStreamSaved,
  kChunkBegun,
  kChunkMoved,
  kChunkSaved,
  kChunksSaved,
  kInserted,
  kRemoved,
  kLent,
  kAcknowledged,
  kGivenBack,
  kKept,
  kLetGo,
  kKeptSaved,
  kPrioritiesSet,
  kLimitsSet,
  kCapacitySet,
  kVersionSet,
  kTableCounted,
  kCounted,
  kStepsSaved,
  kPlacesUsed,
};

// One struct a kind; the arrays that it counts lie behind it. Sizes are multiples of 8.
struct TableAdded {
  static constexpr Kind kKind = Kind::kTableAdded;
  uint32_t table, pool;
};
struct SlabsGrown {
  static constexpr Kind kKind = Kind::kSlabsGrown;
  uint32_t pool, num_slabs;
};
struct SessionBegun {
  static constexpr Kind kKind = Kind::kSessionBegun;
  uint32_t session, padding;
};
// How a session goes on with another server, in bytes that only servers read.
struct SessionDescribed {
  static constexpr Kind kKind = Kind::kSessionDescribed;
  uint32_t session, num_bytes;
};
struct SessionProgressed {
  static constexpr Kind kKind = Kind::kSessionProgressed;
  uint32_t session, padding;
  SessionProgress progress;
};
// The session's writers are closed and its loans given back.
struct SessionEnded {
  static constexpr Kind kKind = Kind::kSessionEnded;
  uint32_t session, padding;
};
struct WriterOpened {
  static constexpr Kind kKind = Kind::kWriterOpened;
  uint32_t writer, session, pool, stream;
  uint32_t num_name_bytes, padding;
};
struct WriterClosed {
  static constexpr Kind kKind = Kind::kWriterClosed;
  uint32_t writer, padding;
};
struct WriterAdvanced {
  static constexpr Kind kKind = Kind::kWriterAdvanced;
  uint32_t writer, padding;
  uint64_t next_sequence;
};
// The next sequence of the last writer of a name.
struct SequenceSaved {
  static constexpr Kind kKind = Kind::kSequenceSaved;
  uint64_t next_sequence;
  uint32_t num_name_bytes, padding;
};
struct Granted {
  static constexpr Kind kKind = Kind::kGranted;
  uint32_t writer, chunk;
};
struct Appended {
  static constexpr Kind kKind = Kind::kAppended;
  uint32_t writer, chunk;
};
// A stream's writer holds chunks from this one on.
struct Released {
  static constexpr Kind kKind = Kind::kReleased;
  uint32_t pool, stream;
  uint64_t first_of_writer;
};
// Chunks before this one are forgotten.
struct StreamTrimmed {
  static constexpr Kind kKind = Kind::kStreamTrimmed;
  uint32_t pool, stream;
  uint64_t first_chunk;
};
// A whole stream: uint32_t slots of its chunks.
struct StreamSaved {
  static constexpr Kind kKind = Kind::kStreamSaved;
  uint32_t pool, stream;
  uint64_t first_chunk, first_of_writer;
  uint32_t is_open, num_chunks;
};
// Of pools with a disk: a new chunk, in a slot of memory alone.
struct ChunkBegun {
  static constexpr Kind kKind = Kind::kChunkBegun;
  uint32_t pool, chunk, slot, padding;
};
// The chunk is in another slot, or in none.
struct ChunkMoved {
  static constexpr Kind kKind = Kind::kChunkMoved;
  uint32_t pool, chunk, slot, padding;
};
// The chunk is on disk too.
struct ChunkSaved {
  static constexpr Kind kKind = Kind::kChunkSaved;
  uint32_t pool, chunk, place, checksum;
};
// Where chunks from `first` on are: a SavedChunk each.
struct ChunksSaved {
  static constexpr Kind kKind = Kind::kChunksSaved;
  uint32_t pool, first, count, padding;
};
// How many places of a pool ever held a chunk.
struct PlacesUsed {
  static constexpr Kind kKind = Kind::kPlacesUsed;
  uint32_t pool, num_places;
};
// Steps of a chunk that is not complete: their bytes, column after column.
struct StepsSaved {
  static constexpr Kind kKind = Kind::kStepsSaved;
  uint32_t pool, chunk, first, count;
  uint64_t num_bytes;
};
struct Inserted {
  static constexpr Kind kKind = Kind::kInserted;
  int64_t key;
  StepRange steps;
  uint32_t table, version;
  float priority;
  uint32_t times_sampled;
};
struct Removed {
  static constexpr Kind kKind = Kind::kRemoved;
  int64_t key;
  uint32_t table, padding;
};
// int64_t keys, then a StepRange each.
struct Lent {
  static constexpr Kind kKind = Kind::kLent;
  uint64_t lease;
  uint32_t session, table;
  uint32_t count, padding;
};
struct Acknowledged {
  static constexpr Kind kKind = Kind::kAcknowledged;
  uint64_t lease;
};
struct GivenBack {
  static constexpr Kind kKind = Kind::kGivenBack;
  uint64_t lease;
};
// The steps of a loan stay when it ends, until they are let go of.
struct Kept {
  static constexpr Kind kKind = Kind::kKept;
  uint64_t lease;
};
struct LetGo {
  static constexpr Kind kKind = Kind::kLetGo;
  uint64_t lease;
};
// The kept steps of a loan that has ended: a StepRange each.
struct KeptSaved {
  static constexpr Kind kKind = Kind::kKeptSaved;
  uint64_t lease;
  uint32_t session, table;
  uint32_t count, padding;
};
// int64_t keys, then a float each.
struct PrioritiesSet {
  static constexpr Kind kKind = Kind::kPrioritiesSet;
  uint32_t table, count;
};
struct LimitsSet {
  static constexpr Kind kKind = Kind::kLimitsSet;
  uint64_t table;
  RateLimits limits;
};
struct CapacitySet {
  static constexpr Kind kKind = Kind::kCapacitySet;
  uint64_t table, max_items, max_steps;
};
struct VersionSet {
  static constexpr Kind kKind = Kind::kVersionSet;
  uint32_t table, version;
};
struct TableCounted {
  static constexpr Kind kKind = Kind::kTableCounted;
  uint64_t table, num_inserts, num_samples;
  int64_t num_serials;
};
struct Counted {
  static constexpr Kind kKind = Kind::kCounted;
  uint64_t next_session, next_lease, num_restarts;
};

}  // namespace event

// Records that the store has not taken yet. Not thread-safe.
class Log {
 public:
  // What every record begins with.
  struct Head {
    event::Kind kind;
    uint32_t num_bytes;  // of the whole record, a multiple of 8
  };

  template <class Event, class... Tails>
  void add(const Event& event, Tails... tails) {
    static_assert(sizeof(Event) % 8 == 0 && std::is_trivially_copyable_v<Event>);
    const size_t length = sizeof(Head) + sizeof event + (size_t{0} + ... + tails.size_bytes());
    const size_t padded = (length + 7) / 8 * 8;
    const size_t begin = bytes_.size();
    bytes_.resize(begin + padded);
    std::byte* to = bytes_.data() + begin;
    const Head head{Event::kKind, static_cast<uint32_t>(padded)};
    to = put(to, std::as_bytes(std::span(&head, 1)));
    to = put(to, std::as_bytes(std::span(&event, 1)));
    ((to = put(to, std::as_bytes(tails))), ...);
  }

  std::span<const std::byte> pending() const { return bytes_; }
  // Says that the pending records are taken; the memory is kept.
  void clear() { bytes_.clear(); }

 private:
  static std::byte* put(std::byte* to, std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return to + from.size();
  }

  std::vector<std::byte> bytes_;
};

}  // namespace tengen::store::engine
