#pragma once
// Who holds which steps: streams of chunks, each chunk a fixed number of steps in one slot of
// memory, counted by the items, writers and batches that need it.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "replay/table.h"

namespace tengen::replay {

// Steps one after another in one chunk.
struct Piece {
  uint32_t slot;    // of memory
  uint32_t offset;  // of the first step, in steps
  uint32_t num_steps;
};

// A stream is what one writer appends; its steps are counted from 0 and lie in chunks of equal
// length. A chunk lives while an item, a batch or its writer holds it; then its slot is free.
// Not thread-safe; nothing blocks, and nothing costs more than the chunks that it names.
class Streams final : public StepHolder {
 public:
  explicit Streams(uint32_t steps_per_chunk) : steps_per_chunk_(steps_per_chunk) {}

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

  // Whether each of these steps lies in a chunk that lives.
  bool contains(const StepRange& steps) const;
  // Steps that are contained stay until let_go.
  void hold(const StepRange& steps) override;
  void let_go(const StepRange& steps) override;

  // Brings what hold() and locate() will read near; steps are contained.
  void prefetch(const StepRange& steps) const {
    const Stream& stream = streams_[steps.stream];
    __builtin_prefetch(&stream.chunks[chunk_of(steps.first) - stream.first_chunk], 1);
  }

  // Where held steps lie, piece after piece, appended to `pieces`.
  void locate(const StepRange& steps, std::vector<Piece>* pieces) const;

  // Slots of chunks that have died since the last call.
  std::vector<uint32_t> take_free_slots();

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
  void drop(Stream& stream, uint64_t chunk);
  void drop_tail(uint32_t number);

  const uint32_t steps_per_chunk_;
  uint64_t num_chunks_ = 0;
  std::vector<Stream> streams_;
  std::vector<uint32_t> free_streams_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace tengen::replay
