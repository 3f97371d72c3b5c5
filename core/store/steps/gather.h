#pragma once
// Copies steps from chunks into the arrays of a batch, and from arrays into chunks.

#include <cstddef>
#include <cstdint>
#include <span>

#include "store/state/saved.h"
#include "store/state/schema.h"
#include "store/tables/streams.h"

namespace tengen::store::engine {

// Where slots of memory lie: slot s at bases[s / slots_per_slab] + (s % slots_per_slab) * stride.
struct Slabs {
  std::span<std::byte* const> bases;
  uint32_t slots_per_slab = 1;
  uint64_t stride = 0;

  std::byte* at(uint32_t slot) const {
    return bases[slot / slots_per_slab] + slot % slots_per_slab * stride;
  }
};

// Copies the steps of the pieces into out[c] for each column c of the schema, one after another, in
// C order.
void gather(const Schema& schema, const Slabs& slabs, std::span<const Piece> pieces,
            std::span<std::byte* const> out);

// Copies `num_steps` steps from in[c], C order, into a chunk at `offset` steps.
void scatter(const Schema& schema, std::span<const std::byte* const> in, uint32_t num_steps,
             std::byte* chunk, uint32_t offset);

// The shortest copy that goes past the cache. Shorter copies into one chunk after another are as
// fast by memcpy, and those of a small table stay in the cache.
constexpr uint64_t kMinStreamBytes = uint64_t{32} << 10;

// As memcpy, to memory that is not read soon. A long copy goes past the cache where the processor
// can: the target is not first read from memory, and data that others need stays in the cache.
void stream_copy(std::byte* to, const std::byte* from, uint64_t num_bytes);

// Steps `first` to `first + count - 1` of a chunk as bytes of their own, column after column.
SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first, uint32_t count);

// Writes packed steps into a chunk. Throws Error where they are no steps of the schema.
void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk);

}  // namespace tengen::store::engine
