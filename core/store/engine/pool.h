#pragma once
// The chunks of one schema: slots in slabs of memory, and the streams whose steps lie in them.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/engine/schema.h"
#include "store/engine/slots.h"
#include "store/engine/staging.h"
#include "store/engine/streams.h"

namespace tengen::store::engine {

// Not thread-safe; nothing blocks. A chunk is taken by its writer before anything lies in it, and
// comes back when nobody needs it any more. Without a disk its number is its slot's; with one,
// `staging` knows where it is.
class Pool {
 public:
  // `memory` and `disk` outlive the pool; `number` is the pool's own in them; `log` is as for
  // Streams; without `disk` chunks are in memory alone. Throws Error where a budget holds not even
  // one chunk.
  Pool(Schema schema, Memory* memory, uint32_t number, Log* log = nullptr, Disk* disk = nullptr);

  const Schema& schema() const { return schema_; }
  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }
  const Slots& slots() const { return slots_; }
  // Null where chunks are in memory alone.
  Staging* staging() { return staging_.get(); }
  const Staging* staging() const { return staging_.get(); }

  // A chunk that nothing lies in, or none where there is no memory now.
  std::optional<uint32_t> take_chunk();
  // One that was taken and not used.
  void return_chunk(uint32_t chunk);
  // Where it lies, while it is being filled or a loan has it.
  uint32_t slot_of(uint32_t chunk) const {
    return staging_ == nullptr ? chunk : staging_->slot_of(chunk);
  }
  // Starts what the disk can do now. Does nothing without one.
  void advance();
  // The last chunk of a stream is filled.
  void complete_last(uint32_t stream);

  // Goes on with the slabs, streams and chunks of a store that ended; items and loans hold theirs
  // between the two calls. `granted` are chunks that writers have and have not filled. Throws Error
  // where a slab is not there.
  void begin_restore(uint32_t num_slabs, std::span<const SavedStream> streams,
                     std::span<const SavedChunk> chunks, uint32_t num_places);
  // Between them: a chunk that is neither in memory nor on disk has these steps. Throws Error where
  // there is no memory for it.
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
