#pragma once
// The positions of steps in chunks and in batches, and copies between the two.

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

// The addresses of slots: slot s lies at bases[s / slots_per_slab] + (s % slots_per_slab) * stride.
struct Slabs {
  std::span<std::byte* const> bases;
  uint32_t slots_per_slab = 1;
  uint64_t stride = 0;

  std::byte* at(uint32_t slot) const {
    return bases[slot / slots_per_slab] + slot % slots_per_slab * stride;
  }
};

// The addresses of a pool's slots in this process. Looks up each slab when one of its slots is
// first needed. Not thread-safe.
class SlabMap {
 public:
  // `find` returns the address of slab `index` of the pool; it is called once per slab.
  using Find = std::function<std::byte*(uint32_t index)>;
  SlabMap(uint32_t slots_per_slab, uint64_t stride, Find find)
      : slots_per_slab_(slots_per_slab), stride_(stride), find_(std::move(find)) {}

  // Returns an empty map, for a client on another host, whose messages contain the steps.
  static SlabMap none() { return {1, 0, {}}; }
  bool is_none() const { return !find_; }

  // Returns the addresses of the slots up to `last_slot`. Valid until the next call.
  Slabs up_to(uint32_t last_slot) {
    while (bases_.size() <= last_slot / slots_per_slab_) {
      bases_.push_back(find_(static_cast<uint32_t>(bases_.size())));
    }
    return {bases_, slots_per_slab_, stride_};
  }
  // Returns the addresses of the slots that contain `pieces`. Valid until the next call.
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

// The positions of a batch's columns in its buffer. Column c begins at offsets[c], a multiple of
// 64. The bytes between two columns are unspecified.
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

// Copies the steps of the pieces, in order, into out[c] for each column c, in C order.
void gather(const Schema& schema, const Slabs& slabs, std::span<const Piece> pieces,
            std::span<std::byte* const> out);

// Copies `num_steps` steps from in[c], in C order, into a chunk, at an offset of `offset` steps.
void scatter(const Schema& schema, std::span<const std::byte* const> in, uint32_t num_steps,
             std::byte* chunk, uint32_t offset);

// The minimum size of a copy that bypasses the cache. Shorter copies into different chunks are as
// fast with memcpy, and the data of a small table stays in the cache.
constexpr uint64_t kMinStreamBytes = uint64_t{32} << 10;

// Copies like memcpy, for a destination that is not read soon. If the processor has non-temporal
// stores, a long copy uses them, so that it neither reads the destination from memory nor evicts
// other data from the cache.
void stream_copy(std::byte* to, const std::byte* from, uint64_t num_bytes);

// Copies steps [first, first + count) of a chunk into a new buffer, column by column.
SavedSteps pack_steps(const Schema& schema, const std::byte* chunk, uint32_t first, uint32_t count);

// Writes packed steps into a chunk. Throws Error if they do not fit the schema.
void unpack_steps(const Schema& schema, const SavedSteps& steps, std::byte* chunk);

}  // namespace tengen::store::engine

namespace tengen::store {
using engine::BatchLayout;
using engine::SlabMap;
}  // namespace tengen::store
