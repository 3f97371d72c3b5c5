#pragma once
// Memory for chunks: the slabs of all pools within one budget, and the slots of one pool in them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/state/log.h"
#include "transport/shared_memory.h"

namespace tengen::store::engine {

// The slabs of all pools of a store, within one budget. Not thread-safe.
class Memory {
 public:
  // Slabs are files in `directory`, which other processes map, or private memory of this process if
  // it is empty. Throws Error if the file system has less space for a new directory than the
  // budget.
  Memory(std::string directory, uint64_t budget_bytes);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  // Adds one more to the equal parts of the budget, one part per caller. So a pool that fills
  // memory first cannot use the parts of other pools.
  void divide() { ++num_parts_; }
  // The size of one part of the budget.
  uint64_t part_bytes() const { return budget_bytes_ / num_parts_; }
  // Creates a slab in the file `name`, or maps an existing file with that name and size. The slab
  // never moves. Precondition: the budget has room. Throws Error if the file system has no space.
  std::byte* allocate(const std::string& name, uint64_t num_bytes);
  // As allocate(), but returns null if other files occupy the space. The next few calls then return
  // null without a call to the file system, which would cost time.
  std::byte* try_allocate(const std::string& name, uint64_t num_bytes);
  // Why the last try_allocate() returned null; empty if it succeeded.
  const std::string& trouble() const { return trouble_; }

 private:
  std::string directory_;
  uint64_t budget_bytes_;
  uint64_t used_bytes_ = 0;
  uint64_t num_parts_ = 0;
  std::string trouble_;
  uint32_t num_skipped_ = 0;  // calls of try_allocate() since the last check of the file system
  std::vector<transport::SharedMemory> slabs_;
};

// The slots of one pool, which have one size. Not thread-safe; nothing blocks.
class Slots {
 public:
  // `memory` must outlive the slots, and is divided among all pools. `pool` is the index of the
  // pool that owns the slots. Throws Error if the pool's part cannot hold even one slot.
  Slots(Memory* memory, uint32_t pool, uint64_t slot_bytes, Log* log);

  // The file name of slab `index` of pool `number`, in the memory's directory.
  static std::string slab_name(uint32_t number, uint64_t index) {
    return "slab-" + std::to_string(number) + "-" + std::to_string(index);
  }

  // Takes an empty slot, or returns none if the pool's part is used up or the file system is full.
  std::optional<uint32_t> take();
  void give_back(uint32_t slot) { free_.push_back(slot); }
  // Whether a free slot exists. If not, take() must create a slab.
  bool has_free() const { return !free_.empty(); }

  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t num_slots() const { return num_slots_; }
  uint64_t num_taken() const { return num_slots_ - free_.size(); }
  // The number of slots in this pool's part of the budget.
  uint64_t max_slots() const;
  uint32_t slots_per_slab() const { return slots_per_slab_; }
  // Why take() could not create a slab; empty unless the file system is full.
  const std::string& trouble() const { return memory_->trouble(); }
  // The address of slab `index`, valid during the lifetime of the memory.
  std::byte* slab(size_t index) const { return bases_[index]; }
  std::byte* at(uint32_t slot) const {
    return bases_[slot / slots_per_slab_] + slot % slots_per_slab_ * slot_bytes_;
  }

  // Restore existing slabs; end_restore() frees the slots that are not taken.
  void begin_restore(uint32_t num_slabs);
  void end_restore(const std::vector<bool>& is_taken);

 private:
  uint64_t slab_bytes() const { return slot_bytes_ * slots_per_slab_; }
  bool grow();
  void add_slab(std::byte* slab);

  Memory* const memory_;
  const uint32_t pool_;
  const uint64_t slot_bytes_;
  Log* const log_;
  uint32_t slots_per_slab_;
  uint64_t num_slots_ = 0;
  std::vector<std::byte*> bases_;
  std::vector<uint32_t> free_;
};

}  // namespace tengen::store::engine
