#pragma once
// The chunks of one schema: slots in slabs of memory, and the streams whose steps lie in them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/shared_memory.h"
#include "replay/gather.h"
#include "replay/schema.h"
#include "replay/streams.h"

namespace tengen::replay {

// Slabs of all pools of a store, within one budget. Not thread-safe.
class Memory {
 public:
  // Slabs are files `slab-<n>` in `directory`, which other processes map, or memory of this
  // process alone where it is empty.
  Memory(std::string directory, uint64_t budget_bytes)
      : directory_(std::move(directory)), budget_bytes_(budget_bytes) {}

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t free_bytes() const { return budget_bytes_ - used_bytes_; }
  // A new slab's number. Precondition: num_bytes <= free_bytes(). Throws Error where the file
  // system has no room.
  uint32_t allocate(uint64_t num_bytes);
  const ipc::SharedMemory& slab(uint32_t number) const { return slabs_[number]; }
  uint32_t num_slabs() const { return static_cast<uint32_t>(slabs_.size()); }

 private:
  std::string directory_;
  uint64_t budget_bytes_;
  uint64_t used_bytes_ = 0;
  std::vector<ipc::SharedMemory> slabs_;
};

// Not thread-safe; nothing blocks. Slots are taken by writers before anything lies in them, and
// come back when no chunk lies in them any more.
class Pool {
 public:
  // `memory` outlives the pool. Throws Error where its budget holds not even one chunk.
  Pool(Schema schema, Memory* memory);

  const Schema& schema() const { return schema_; }
  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }

  // A slot that nothing lies in, or none where the budget is spent on chunks that live.
  std::optional<uint32_t> take_slot();
  // A slot that was taken and not used.
  void return_slot(uint32_t slot) { free_slots_.push_back(slot); }

  uint64_t num_slots() const { return num_slots_; }
  // The slabs' numbers in Memory, in the order of their slots.
  const std::vector<uint32_t>& slabs() const { return slabs_; }
  uint32_t slots_per_slab() const { return slots_per_slab_; }
  // Valid until the next take_slot().
  Slabs view() const { return {bases_, slots_per_slab_, schema_.chunk_bytes()}; }

 private:
  void reclaim();
  bool grow();

  Schema schema_;
  Memory* const memory_;
  Streams streams_;
  uint32_t slots_per_slab_;
  uint64_t num_slots_ = 0;
  std::vector<uint32_t> slabs_;
  std::vector<std::byte*> bases_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace tengen::replay
