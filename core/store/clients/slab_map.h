#pragma once
// Where the slots of a pool lie in this process.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "store/steps/gather.h"

namespace tengen::store {

// Finds each slab when one of its slots is first needed. Not thread-safe.
class SlabMap {
 public:
  // `find` tells where slab `index` of the pool lies; it is asked once a slab.
  using Find = std::function<std::byte*(uint32_t index)>;
  SlabMap(uint32_t slots_per_slab, uint64_t stride, Find find)
      : slots_per_slab_(slots_per_slab), stride_(stride), find_(std::move(find)) {}

  // For a client that gets its steps gathered.
  static SlabMap none() { return {1, 0, {}}; }

  // Slots up to `last_slot`. Valid until the next call.
  engine::Slabs up_to(uint32_t last_slot) {
    while (bases_.size() <= last_slot / slots_per_slab_) {
      bases_.push_back(find_(static_cast<uint32_t>(bases_.size())));
    }
    return {bases_, slots_per_slab_, stride_};
  }
  // The slots that the pieces lie in. Valid until the next call.
  engine::Slabs of(std::span<const engine::Piece> pieces) {
    uint32_t last_slot = 0;
    for (const engine::Piece& piece : pieces) last_slot = std::max(last_slot, piece.slot);
    return up_to(last_slot);
  }

 private:
  const uint32_t slots_per_slab_;
  const uint64_t stride_;
  const Find find_;
  std::vector<std::byte*> bases_;
};

}  // namespace tengen::store
