#pragma once
// Memory for chunks: slabs of all pools within one budget, and the slots of one pool in them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/state/log.h"
#include "transport/shared_memory.h"

namespace tengen::store::engine {

// Slabs of all pools of a store, within one budget. Not thread-safe.
class Memory {
 public:
  // Slabs are files in `directory`, which other processes map, or memory of this process alone
  // where it is empty. Throws Error where the file system of a new one has less room than the
  // budget.
  Memory(std::string directory, uint64_t budget_bytes);

  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  // Divides the budget into equal parts for the caller and everyone who called before, so that
  // nobody who fills memory first keeps the others from their part.
  void divide() { ++num_parts_; }
  // How much of the budget one part is.
  uint64_t part_bytes() const { return budget_bytes_ / num_parts_; }
  // Makes a slab, whose file is called `name`, or maps the file of that name and size that is
  // there. The slab never moves. Precondition: the budget has room. Throws Error where the
  // file system has no room.
  std::byte* allocate(const std::string& name, uint64_t num_bytes);
  // The same; null where other files have taken the room. Then the next few calls return null
  // without asking the file system, as that costs time.
  std::byte* try_allocate(const std::string& name, uint64_t num_bytes);
  // Why the last try_allocate() returned null; empty where it did not.
  const std::string& trouble() const { return trouble_; }

 private:
  std::string directory_;
  uint64_t budget_bytes_;
  uint64_t used_bytes_ = 0;
  uint64_t num_parts_ = 0;
  std::string trouble_;
  uint32_t num_skipped_ = 0;  // calls of try_allocate since it asked the file system
  std::vector<transport::SharedMemory> slabs_;
};

// Slots of one size. Not thread-safe; nothing blocks.
class Slots {
 public:
  // `memory` outlives the slots and is divided among all pools; `pool` is their number in it.
  // Throws Error where their part cannot hold even one slot.
  Slots(Memory* memory, uint32_t pool, uint64_t slot_bytes, Log* log);

  // The file of slab `index` of pool `number`, in the memory's directory.
  static std::string slab_name(uint32_t number, uint64_t index) {
    return "slab-" + std::to_string(number) + "-" + std::to_string(index);
  }

  // Takes an empty slot; none where the pool's part is used up or the file system is full.
  std::optional<uint32_t> take();
  void give_back(uint32_t slot) { free_.push_back(slot); }
  // Whether a slot lies ready; where not, take() must make a slab.
  bool has_free() const { return !free_.empty(); }

  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t num_slots() const { return num_slots_; }
  uint64_t num_taken() const { return num_slots_ - free_.size(); }
  // How many slots this pool's part of the budget holds.
  uint64_t max_slots() const;
  uint32_t slots_per_slab() const { return slots_per_slab_; }
  // Why there are fewer slots than that, where the file system is full; empty otherwise.
  const std::string& trouble() const { return memory_->trouble(); }
  // The address of slab `index`, valid for as long as the memory lives.
  std::byte* slab(size_t index) const { return bases_[index]; }
  std::byte* at(uint32_t slot) const {
    return bases_[slot / slots_per_slab_] + slot % slots_per_slab_ * slot_bytes_;
  }

  // Goes on with existing slabs; end_restore() frees the slots that are not taken.
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
