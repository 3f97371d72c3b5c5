#pragma once
// Tracks the steps that are in use. A stream consists of chunks, and each chunk is a fixed number
// of steps in one slot of memory, with a count of the items, writers and batches that need it.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "store/state/log.h"
#include "store/state/saved.h"
#include "store/tables/table.h"

namespace tengen::store::engine {

// Consecutive steps in one chunk.
struct Piece {
  // a slot of memory; in a pool with a disk, the chunk's number until the chunk has a slot
  uint32_t slot;
  uint32_t offset;  // position of the first step in the chunk
  uint32_t num_steps;
};

// A stream contains the steps of one writer, counted from 0, in chunks of equal length. A chunk
// lives while an item, a batch or its writer holds it; then its slot is free. Not thread-safe;
// nothing blocks, and a call takes time proportional to the number of chunks in its arguments.
class Streams final : public StepHolder {
 public:
  // `log` must outlive the streams, and records their changes as streams of pool `pool`, or nothing
  // if null. `num_touched` must also outlive the streams, which add the cost of their calls to it.
  // Other objects may add to it, too. If null, the streams use their own counter.
  explicit Streams(uint32_t steps_per_chunk, Log* log = nullptr, uint32_t pool = 0,
                   uint64_t* num_touched = nullptr)
      : steps_per_chunk_(steps_per_chunk),
        log_(log),
        pool_(pool),
        num_touched_(num_touched != nullptr ? num_touched : &own_touched_) {}
  Streams(const Streams&) = delete;

  uint32_t steps_per_chunk() const { return steps_per_chunk_; }
  // The number of live chunks.
  uint64_t num_chunks() const { return num_chunks_; }

  // Returns a new stream. Its writer holds the chunks until release_before() or close().
  uint32_t open();
  // Appends the next chunk of a stream; its steps are in `slot`.
  void append(uint32_t stream, uint32_t slot);
  // Declares that later items of the writer will use no step before `first`.
  void release_before(uint32_t stream, uint64_t first);
  // Reports that the writer is gone: it holds nothing, and the stream accepts no more chunks.
  void close(uint32_t stream);

  // Whether all `steps` lie in live chunks.
  bool contains(const StepRange& steps) const;
  uint64_t num_touched() const override { return *num_touched_; }
  // Holds the steps until let_go(). Precondition: contains(steps).
  void hold(const StepRange& steps) override;
  void let_go(const StepRange& steps) override;

  // The newest chunk of an open stream, which the writer may still be filling; none if nobody needs
  // that chunk.
  std::optional<uint32_t> last(uint32_t stream) const {
    const Stream& s = streams_[stream];
    if (!s.is_open || s.chunks.empty() || s.chunks.back().num_holders == 0) return std::nullopt;
    return s.chunks.back().slot;
  }
  // The number of steps in all chunks ever appended, including dead chunks.
  uint64_t num_steps(uint32_t stream) const {
    const Stream& s = streams_[stream];
    return (s.first_chunk + s.chunks.size()) * steps_per_chunk_;
  }
  // The last() chunk of every open stream.
  std::vector<uint32_t> open_ends() const {
    std::vector<uint32_t> ends;
    for (uint32_t i = 0; i < streams_.size(); ++i) {
      if (const std::optional<uint32_t> end = last(i)) ends.push_back(*end);
    }
    return ends;
  }

  // Prefetches the memory that hold() and locate() will read. Precondition: contains(steps).
  void prefetch(const StepRange& steps) const {
    const Stream& stream = streams_[steps.stream];
    __builtin_prefetch(&stream.chunks[first_chunk_of(steps) - stream.first_chunk], 1);
  }

  // Appends the locations of held steps to `pieces`.
  void locate(const StepRange& steps, std::vector<Piece>* pieces) const;

  // Returns the slots of the chunks that have died since the last call; valid until the next call.
  const std::vector<uint32_t>& take_free_slots();

  // Restores saved streams; their writers hold them. Then items and loans must hold their steps,
  // before end_restore() drops the chunks that nobody holds. Precondition: there are no streams.
  void begin_restore(std::span<const SavedStream> saved);
  // Returns the slots of the live chunks.
  std::vector<uint32_t> end_restore();

 private:
  struct Chunk {
    uint32_t slot = 0;
    uint32_t num_holders = 0;  // 0 if the chunk is dead
  };
  struct Stream {
    std::deque<Chunk> chunks;
    uint64_t first_chunk = 0;      // index of chunks[0] in the stream
    uint64_t first_of_writer = 0;  // the first chunk that the writer holds
    bool is_open = false;
  };

  uint64_t chunk_of(uint64_t step) const { return step / steps_per_chunk_; }
  uint64_t first_chunk_of(const StepRange& steps) const { return chunk_of(steps.first); }
  uint64_t last_chunk_of(const StepRange& steps) const {
    return chunk_of(steps.first + steps.num_steps - 1);
  }
  void reserve_free_slots();
  void drop(Stream& stream, uint64_t chunk);
  void drop_tail(uint32_t number);

  const uint32_t steps_per_chunk_;
  Log* const log_;
  const uint32_t pool_;
  uint64_t num_chunks_ = 0;
  uint64_t own_touched_ = 0;
  uint64_t* const num_touched_;
  std::vector<Stream> streams_;
  std::vector<uint32_t> free_streams_;
  // Both vectors have capacity for all chunks, so that a chunk's death needs no memory.
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> taken_slots_;
};

}  // namespace tengen::store::engine
