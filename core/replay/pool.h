#pragma once
// The chunks of one schema: slots in slabs of memory, and the streams whose steps lie in them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ipc/shared_memory.h"
#include "replay/schema.h"
#include "replay/streams.h"

namespace tengen::replay {

// Slabs of all pools of a store, within one budget. Not thread-safe.
class Memory {
 public:
  // Slabs are files in `directory`, which other processes map, or memory of this process alone
  // where it is empty.
  Memory(std::string directory, uint64_t budget_bytes)
      : directory_(std::move(directory)), budget_bytes_(budget_bytes) {}

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t free_bytes() const { return budget_bytes_ - used_bytes_; }
  // A new slab, whose file is called `name`; it stays where it is. Precondition: num_bytes <=
  // free_bytes(). Throws Error where the file system has no room.
  std::byte* allocate(const std::string& name, uint64_t num_bytes);

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
  // `memory` outlives the pool; `number` is the pool's own in it. Throws Error where the budget
  // holds not even one chunk.
  Pool(Schema schema, Memory* memory, uint32_t number);

  // The file of slab `index` of pool `number`, in the memory's directory.
  static std::string slab_name(uint32_t number, uint64_t index) {
    return "slab-" + std::to_string(number) + "-" + std::to_string(index);
  }

  const Schema& schema() const { return schema_; }
  Streams& streams() { return streams_; }
  const Streams& streams() const { return streams_; }

  // A slot that nothing lies in, or none where the budget is spent on chunks that live.
  std::optional<uint32_t> take_slot();
  // A slot that was taken and not used.
  void return_slot(uint32_t slot) { free_slots_.push_back(slot); }

  uint64_t num_slots() const { return num_slots_; }
  // Slots that the whole budget would hold.
  uint64_t max_slots() const { return memory_->budget_bytes() / schema_.chunk_bytes(); }
  // Where slab `index` lies, for as long as the memory lives.
  std::byte* slab(size_t index) const { return bases_[index]; }
  uint32_t slots_per_slab() const { return slots_per_slab_; }

 private:
  void reclaim();
  bool grow();

  Schema schema_;
  Memory* const memory_;
  Streams streams_;
  uint32_t slots_per_slab_;
  uint64_t num_slots_ = 0;
  const uint32_t number_;
  std::vector<std::byte*> bases_;
  std::vector<uint32_t> free_slots_;
};

}  // namespace tengen::replay
