#pragma once
// The chunks of one schema: slots in slabs of memory, and the streams whose steps lie in them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/state/schema.h"
#include "store/steps/slots.h"
#include "store/steps/staging.h"
#include "store/tables/streams.h"

namespace tengen::store::engine {

// The chunks of one schema. Not thread-safe; nothing blocks. A writer takes an empty chunk, and the
// chunk returns to the pool when nobody needs it any more. Without a disk, a chunk's number is the
// number of its slot. With a disk, staging() knows where the chunk is.
class Pool {
 public:
  // `memory` and `disk` must outlive the pool; `number` is the pool's index in both. `log` and
  // `num_touched` are the parameters of Streams. Without `disk`, chunks are only in memory. Throws
  // Error if a budget cannot hold even one chunk.
  Pool(Schema schema, Memory* memory, uint32_t number, Log* log = nullptr, Disk* disk = nullptr,
       uint64_t* num_touched = nullptr);

  const Schema& schema() const { return schema_; }
  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }
  const Slots& slots() const { return slots_; }
  // Returns the disk side of the pool, or null if chunks are only in memory.
  Staging* staging() { return staging_.get(); }
  const Staging* staging() const { return staging_.get(); }

  // Takes an empty chunk, or returns none without memory. `num_beside`: see Staging::begin_chunk().
  std::optional<uint32_t> take_chunk(uint64_t num_beside = 0);
  // Gives back a chunk that was taken but not used.
  void return_chunk(uint32_t chunk);
  // Returns the slot of a chunk. Precondition: the chunk is being filled, or is part of a loan.
  uint32_t slot_of(uint32_t chunk) const {
    return staging_ == nullptr ? chunk : staging_->residence().slot_of(chunk);
  }
  // Starts the transfers that the disk can do now. Does nothing without a disk.
  void advance();
  // Reports that the last chunk of a stream is full.
  void complete_last(uint32_t stream);

  // Restore the slabs, streams and chunks of an earlier store; items and loans must hold their
  // steps between the two calls. `granted` are chunks that writers hold and have not filled. Throw
  // Error if a slab is missing.
  void begin_restore(uint32_t num_slabs, std::span<const SavedStream> streams,
                     std::span<const SavedChunk> chunks, uint32_t num_places);
  // Restores the steps of a chunk that is neither in memory nor on disk. Call it between
  // begin_restore() and end_restore(). Throws Error if there is no memory for the chunk.
  void restore_steps(uint32_t chunk, std::span<const SavedSteps> steps);
  void end_restore(std::span<const uint32_t> granted);

 private:
  void reclaim();

  Schema schema_;
  Streams streams_;
  Slots slots_;
  std::unique_ptr<Staging> staging_;
};

}  // namespace tengen::store::engine
