#pragma once
// Copies steps from chunks into the arrays of a batch, and from arrays into chunks.

#include <cstddef>
#include <cstdint>
#include <span>

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

}  // namespace tengen::store::engine
