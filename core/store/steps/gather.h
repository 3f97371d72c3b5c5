#pragma once
// Where steps lie, in chunks and in batches, and copies between the two.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

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

// Where the slots of a pool lie in this process: finds each slab when one of its slots is first
// needed. Not thread-safe.
class SlabMap {
 public:
  // `find` tells where slab `index` of the pool lies; it is asked once a slab.
  using Find = std::function<std::byte*(uint32_t index)>;
  SlabMap(uint32_t slots_per_slab, uint64_t stride, Find find)
      : slots_per_slab_(slots_per_slab), stride_(stride), find_(std::move(find)) {}

  // For a client that gets its steps gathered.
  static SlabMap none() { return {1, 0, {}}; }

  // Slots up to `last_slot`. Valid until the next call.
  Slabs up_to(uint32_t last_slot) {
    while (bases_.size() <= last_slot / slots_per_slab_) {
      bases_.push_back(find_(static_cast<uint32_t>(bases_.size())));
    }
    return {bases_, slots_per_slab_, stride_};
  }
  // The slots that the pieces lie in. Valid until the next call.
  Slabs of(std::span<const Piece> pieces) {
    uint32_t last_slot = 0;
    for (const Piece& piece : pieces) last_slot = std::max(last_slot, piece.slot);
    return up_to(last_slot);
  }

 private:
  const uint32_t slots_per_slab_;
  const uint64_t stride_;
  const Find find_;
  std::vector<std::byte*> bases_;
};

// Where the columns of a batch lie in its buffer. Column c begins at offsets[c], a multiple of 64;
// bytes between two columns are unspecified.
struct BatchLayout {
  BatchLayout(const Schema& schema, uint32_t num_samples, uint32_t num_steps) {
    for (const Column& column : schema.columns()) {
      offsets.push_back(num_bytes);
      const uint64_t column_bytes = column.num_bytes * num_steps * num_samples;
      num_bytes += (column_bytes + 63) / 64 * 64;
    }
  }

  std::vector<uint64_t> offsets;
  uint64_t num_bytes = 0;
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

namespace tengen::store {
using engine::BatchLayout;
using engine::SlabMap;
}  // namespace tengen::store
