#pragma once
// The log of an engine: its changes as records in chronological order, which build a State.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "store/state/rate_limiter.h"
#include "store/state/saved.h"

namespace tengen::store::engine {

namespace event {

// One struct per kind of record; the arrays that it counts follow it. Sizes are multiples of 8.
struct TableAdded {
  uint32_t table, pool;
};
struct SlabsGrown {
  uint32_t pool, num_slabs;
};
struct SessionBegun {
  uint32_t session, padding;
};
// The description with which another server can resume a session. Only servers read its bytes.
struct SessionDescribed {
  uint32_t session, num_bytes;
};
struct SessionProgressed {
  uint32_t session, padding;
  SessionProgress progress;
};
// The session has ended: its writers are closed, and its loans are given back.
struct SessionEnded {
  uint32_t session, padding;
};
struct WriterOpened {
  uint32_t writer, session, pool, stream;
  uint32_t num_name_bytes, padding;
};
struct WriterClosed {
  uint32_t writer, padding;
};
struct WriterAdvanced {
  uint32_t writer, padding;
  uint64_t next_sequence;
};
// The next sequence number of a writer name.
struct SequenceSaved {
  uint64_t next_sequence;
  uint32_t num_name_bytes, padding;
};
// The engine has forgotten a closed writer name.
struct NameForgotten {
  uint32_t num_name_bytes, padding;
};
struct Granted {
  uint32_t writer, chunk;
};
struct Appended {
  uint32_t writer, chunk;
};
// The stream's writer holds only its chunks from `first_of_writer` on.
struct Released {
  uint32_t pool, stream;
  uint64_t first_of_writer;
};
// The stream has dropped its oldest, dead chunks.
struct StreamTrimmed {
  uint32_t pool, stream;
  uint64_t first_chunk;
};
// A complete stream, followed by the slots of its chunks as uint32_t.
struct StreamSaved {
  uint32_t pool, stream;
  uint64_t first_chunk, first_of_writer;
  uint32_t is_open, num_chunks;
};
// A pool with a disk has a new chunk, which lies only in a slot of memory.
struct ChunkBegun {
  uint32_t pool, chunk, slot, padding;
};
// The chunk has moved to another slot of memory, or out of memory.
struct ChunkMoved {
  uint32_t pool, chunk, slot, padding;
};
// The chunk has been saved to disk.
struct ChunkSaved {
  uint32_t pool, chunk, place, checksum;
};
// The locations of the chunks from `first` on, as an array of SavedChunk.
struct ChunksSaved {
  uint32_t pool, first, count, padding;
};
// The number of rows of a pool that have ever held a chunk.
struct PlacesUsed {
  uint32_t pool, num_places;
};
// Steps of an incomplete chunk, followed by their bytes, column by column.
struct StepsSaved {
  uint32_t pool, chunk, first, count;
  uint64_t num_bytes;
};
struct Inserted {
  int64_t key;
  StepRange steps;
  uint32_t table, padding;
  float priority;
  uint32_t times_sampled;
};
struct Removed {
  int64_t key;
  uint32_t table, num_lost;  // number of promised uses that will never come
};
// A loan. Followed by int64_t keys, then by an array of StepRange.
struct Lent {
  uint64_t lease;
  uint32_t session, table;
  uint32_t count, padding;
};
struct Acknowledged {
  uint64_t lease;
};
struct GivenBack {
  uint64_t lease;
};
// Priorities were set. Followed by int64_t keys, then by float priorities.
struct PrioritiesSet {
  uint32_t table, count;
};
struct LimitsSet {
  uint64_t table;
  RateLimits limits;
};
struct CapacitySet {
  uint64_t table, max_items, max_steps;
};
struct TableCounted {
  uint64_t table, num_inserts, num_samples;
  int64_t num_serials;
};
struct Counted {
  uint64_t next_session, next_lease, num_restarts;
};

// A list of record kinds. A kind's number is its position in the list.
template <class... Events>
struct Kinds {
  template <class Event>
  static constexpr uint32_t number_of() {
    uint32_t number = 0;
    (void)((std::is_same_v<Event, Events> || (++number, false)) || ...);
    static_assert((std::is_same_v<Event, Events> || ...));
    return number;
  }
  // Calls `f` with the kind `number` as template argument. Returns false if none has it.
  template <class F>
  static bool call(uint32_t number, F&& f) {
    return ((number == number_of<Events>() && (f.template operator()<Events>(), true)) || ...);
  }
};
using AllKinds =
    Kinds<TableAdded, SlabsGrown, SessionBegun, SessionDescribed, SessionProgressed, SessionEnded,
          WriterOpened, WriterClosed, WriterAdvanced, SequenceSaved, Granted, Appended, Released,
          StreamTrimmed, StreamSaved, ChunkBegun, ChunkMoved, ChunkSaved, ChunksSaved, Inserted,
          Removed, Lent, Acknowledged, GivenBack, PrioritiesSet, LimitsSet, CapacitySet,
          TableCounted, Counted, StepsSaved, PlacesUsed, NameForgotten>;

template <class Event>
constexpr uint32_t kKindOf = AllKinds::number_of<Event>();

}  // namespace event

// A buffer of records that the store has not stored yet. Not thread-safe.
class Log {
 public:
  // The start of every record.
  struct Head {
    uint32_t kind;       // see event::AllKinds
    uint32_t num_bytes;  // size of the complete record, a multiple of 8
  };

  template <class Event, class... Tails>
  void add(const Event& event, Tails... tails) {
    static_assert(sizeof(Event) % 8 == 0 && std::is_trivially_copyable_v<Event>);
    const size_t length = sizeof(Head) + sizeof event + (size_t{0} + ... + tails.size_bytes());
    const size_t padded = (length + 7) / 8 * 8;
    const size_t begin = bytes_.size();
    bytes_.resize(begin + padded);
    std::byte* to = bytes_.data() + begin;
    const Head head{event::kKindOf<Event>, static_cast<uint32_t>(padded)};
    to = put(to, std::as_bytes(std::span(&head, 1)));
    to = put(to, std::as_bytes(std::span(&event, 1)));
    ((to = put(to, std::as_bytes(tails))), ...);
  }

  // Reserves memory, so that add() allocates none for a record with `num_bytes` bytes of arrays.
  void reserve(size_t num_bytes) {
    const size_t needed = bytes_.size() + num_bytes + 256;
    if (needed > bytes_.capacity()) bytes_.reserve(std::max(needed, 2 * bytes_.capacity()));
  }

  std::span<const std::byte> pending() const { return bytes_; }
  // Clears the pending records, and keeps the memory for reuse.
  void clear() { bytes_.clear(); }

 private:
  static std::byte* put(std::byte* to, std::span<const std::byte> from) {
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    return to + from.size();
  }

  std::vector<std::byte> bytes_;
};

}  // namespace tengen::store::engine
