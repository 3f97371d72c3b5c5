#pragma once
// Runs of a chunk's steps as bytes of their own, column after column.

#include <cstddef>
#include <cstdint>

#include "store/state/saved.h"
#include "store/state/schema.h"

namespace tengen::store::engine {

// Steps `first` to `first + count - 1` of a chunk.
SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first, uint32_t count);

// Writes packed steps into a chunk. Throws Error where they are no steps of the schema.
void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk);

}  // namespace tengen::store::engine
