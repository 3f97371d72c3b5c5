#pragma once
// Who holds which steps: streams of chunks, each chunk a fixed number of steps in one slot of
// memory, counted by the items, writers and batches that need it.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "store/engine/log.h"
#include "store/engine/saved.h"
#include "store/engine/table.h"

namespace tengen::store::engine {

// Steps one after another in one chunk.
struct Piece {
  uint32_t slot;    // of memory; in a pool with a disk the chunk's number, until it has one
  uint32_t offset;  // of the first step, in steps
  uint32_t num_steps;
};

// A stream is what one writer appends; its steps are counted from 0 and lie in chunks of equal
// length. A chunk lives while an item, a batch or its writer holds it; then its slot is free.
// Whoever holds steps holds their context too: the `num_context` steps before the first.
// Not thread-safe; nothing blocks, and nothing costs more than the chunks that it names.
class Streams final : public StepHolder {
 public:
  // `log` outlives the streams and learns what becomes of those of pool `pool`; null: nobody does.
  explicit Streams(uint32_t steps_per_chunk, uint32_t num_context = 0, Log* log = nullptr,
                   uint32_t pool = 0)
      : steps_per_chunk_(steps_per_chunk), num_context_(num_context), log_(log), pool_(pool) {}

  uint32_t steps_per_chunk() const { return steps_per_chunk_; }
  // Chunks that live.
  uint64_t num_chunks() const { return num_chunks_; }

  // A new stream, which its writer holds until close().
  uint32_t open();
  // The stream's next chunk lies in `slot`. Its writer holds it.
  void append(uint32_t stream, uint32_t slot);
  // The writer will name no step before `first` any more.
  void release_before(uint32_t stream, uint64_t first);
  // The writer is gone: it holds nothing, and the stream takes no more.
  void close(uint32_t stream);

  // Whether each of these steps, and of their context, lies in a chunk that lives.
  bool contains(const StepRange& steps) const;
  // Steps that are contained stay until let_go.
  void hold(const StepRange& steps) override;
  void let_go(const StepRange& steps) override;

  // The newest chunk of an open stream, which its writer may be filling; none where nobody needs
  // it.
  std::optional<uint32_t> last(uint32_t stream) const {
    const Stream& s = streams_[stream];
    if (!s.is_open || s.chunks.empty() || s.chunks.back().num_holders == 0) return std::nullopt;
    return s.chunks.back().slot;
  }
  // Steps of chunks that were appended, also of dead ones.
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

  // Brings what hold() and locate() will read near; steps are contained.
  void prefetch(const StepRange& steps) const {
    const Stream& stream = streams_[steps.stream];
    __builtin_prefetch(&stream.chunks[first_chunk_of(steps) - stream.first_chunk], 1);
  }

  // Where held steps lie, their context before them, piece after piece, appended to `pieces`.
  // Before the stream's first step there is nothing; that step stands in for it.
  void locate(const StepRange& steps, std::vector<Piece>* pieces) const;

  // Slots of chunks that have died since the last call.
  std::vector<uint32_t> take_free_slots();

  // Goes on with streams that were saved, held by their writers; then items and loans hold theirs,
  // and end_restore() lets chunks die that nobody held. Precondition: there is no stream yet.
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
  uint64_t begin_of(const StepRange& steps) const {
    return steps.first - std::min<uint64_t>(steps.first, num_context_);
  }
  uint64_t first_chunk_of(const StepRange& steps) const { return chunk_of(begin_of(steps)); }
  void drop(Stream& stream, uint64_t chunk);
  void drop_tail(uint32_t number);

  const uint32_t steps_per_chunk_;
  const uint32_t num_context_;
  Log* const log_;
  const uint32_t pool_;
  uint64_t num_chunks_ = 0;
  std::vector<Stream> streams_;
  std::vector<uint32_t> free_streams_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace tengen::store::engine
