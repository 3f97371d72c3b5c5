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

// Not thread-safe; nothing blocks. A writer takes a chunk while it is empty; the chunk comes back
// when nobody needs it any more. Without a disk a chunk's number is that of its slot; with a disk,
// `staging` knows where the chunk is.
class Pool {
 public:
  // `memory` and `disk` outlive the pool, which is number `number` in both; `log` and
  // `num_touched` as for Streams; without `disk` chunks are in memory alone. Throws Error where a
  // budget cannot hold even one chunk.
  Pool(Schema schema, Memory* memory, uint32_t number, Log* log = nullptr, Disk* disk = nullptr,
       uint64_t* num_touched = nullptr);

  const Schema& schema() const { return schema_; }
  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }
  const Slots& slots() const { return slots_; }
  // Null where chunks are in memory alone.
  Staging* staging() { return staging_.get(); }
  const Staging* staging() const { return staging_.get(); }

  // Takes an empty chunk; none where there is no memory now. `num_beside` as for
  // Staging::begin_chunk().
  std::optional<uint32_t> take_chunk(uint64_t num_beside = 0);
  // Gives back a chunk that was taken and not used.
  void return_chunk(uint32_t chunk);
  // The slot of a chunk. Precondition: the chunk is being filled, or a loan has it.
  uint32_t slot_of(uint32_t chunk) const {
    return staging_ == nullptr ? chunk : staging_->residence().slot_of(chunk);
  }
  // Starts the transfers that the disk can do now. Does nothing without a disk.
  void advance();
  // Says that the last chunk of a stream is filled.
  void complete_last(uint32_t stream);

  // Goes on with the slabs, streams and chunks of a store that ended; items and loans hold their
  // steps between the two calls. `granted` are chunks that writers have and have not filled. Throws
  // Error where a slab is missing.
  void begin_restore(uint32_t num_slabs, std::span<const SavedStream> streams,
                     std::span<const SavedChunk> chunks, uint32_t num_places);
  // Call between the two: gives a chunk that is neither in memory nor on disk its steps. Throws
  // Error where there is no memory for it.
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
