#pragma once
// Who holds which steps: streams of chunks, each chunk a fixed number of steps in one slot of
// memory, counted by the items, writers and batches that need it.

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

// Steps one after another in one chunk.
struct Piece {
  // of memory; in a pool with a disk the chunk's number, until the chunk has a slot
  uint32_t slot;
  uint32_t offset;  // of the first step, in steps
  uint32_t num_steps;
};

// A stream is what one writer appends; its steps are counted from 0 and lie in chunks of equal
// length. A chunk lives while an item, a batch or its writer holds it; then its slot is free. Not
// thread-safe; nothing blocks, and the cost of a call grows only with the chunks that it names.
class Streams final : public StepHolder {
 public:
  // `log` outlives the streams and records changes to them, as streams of pool `pool`; null: none
  // is recorded. `num_touched` outlives them too and is what they add their cost to, beside others;
  // null: they count alone.
  explicit Streams(uint32_t steps_per_chunk, Log* log = nullptr, uint32_t pool = 0,
                   uint64_t* num_touched = nullptr)
      : steps_per_chunk_(steps_per_chunk),
        log_(log),
        pool_(pool),
        num_touched_(num_touched != nullptr ? num_touched : &own_touched_) {}
  Streams(const Streams&) = delete;

  uint32_t steps_per_chunk() const { return steps_per_chunk_; }
  // How many chunks live.
  uint64_t num_chunks() const { return num_chunks_; }

  // Begins a stream, whose writer holds its chunks until close().
  uint32_t open();
  // Appends the stream's next chunk, which lies in `slot`. The writer holds it.
  void append(uint32_t stream, uint32_t slot);
  // Says that the writer will name no step before `first`.
  void release_before(uint32_t stream, uint64_t first);
  // Says that the writer is gone: it holds nothing, and the stream takes no more chunks.
  void close(uint32_t stream);

  // Whether each of these steps lies in a chunk that lives.
  bool contains(const StepRange& steps) const;
  uint64_t num_touched() const override { return *num_touched_; }
  // Keeps the steps until let_go(). Precondition: contains(steps).
  void hold(const StepRange& steps) override;
  void let_go(const StepRange& steps) override;

  // The newest chunk of an open stream, which the writer may still be filling; none where nobody
  // needs it.
  std::optional<uint32_t> last(uint32_t stream) const {
    const Stream& s = streams_[stream];
    if (!s.is_open || s.chunks.empty() || s.chunks.back().num_holders == 0) return std::nullopt;
    return s.chunks.back().slot;
  }
  // Counts the steps of all chunks that were appended, also of dead chunks.
  uint64_t num_steps(uint32_t stream) const {
    const Stream& s = streams_[stream];
    return (s.first_chunk + s.chunks.size()) * steps_per_chunk_;
  }
  // That of every open stream.
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

  // Appends to `pieces` where held steps lie.
  void locate(const StepRange& steps, std::vector<Piece>* pieces) const;

  // The slots of chunks that have died since the last call; valid until the next one.
  const std::vector<uint32_t>& take_free_slots();

  // Goes on with saved streams, which their writers hold. Then items and loans hold their steps,
  // and end_restore() lets chunks die that nobody holds. Precondition: there is no stream yet.
  void begin_restore(std::span<const SavedStream> saved);
  // Returns the slots of the chunks that live.
  std::vector<uint32_t> end_restore();

 private:
  struct Chunk {
    uint32_t slot = 0;
    uint32_t num_holders = 0;  // 0: dead
  };
  struct Stream {
    std::deque<Chunk> chunks;
    uint64_t first_chunk = 0;      // number of chunks[0]
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
  // Both have room for all chunks, so that one that dies needs no memory.
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> taken_slots_;
};

}  // namespace tengen::store::engine
