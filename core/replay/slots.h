#pragma once
// Memory for chunks: slabs of all pools within one budget, and the slots of one pool in them.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ipc/shared_memory.h"
#include "replay/log.h"

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
  // Who asks has an equal part of the budget from here on, and so has everyone who asked before.
  void divide() { ++num_parts_; }
  // What one may have of it; all where nobody asked for a part.
  uint64_t part_bytes() const { return budget_bytes_ / std::max<uint64_t>(1, num_parts_); }
  // A new slab, whose file is called `name`, or the one of that name and size that is there; it
  // stays where it is. Precondition: num_bytes <= free_bytes(). Throws Error where the file system
  // has no room.
  std::byte* allocate(const std::string& name, uint64_t num_bytes);

 private:
  std::string directory_;
  uint64_t budget_bytes_;
  uint64_t used_bytes_ = 0;
  uint64_t num_parts_ = 0;
  std::vector<ipc::SharedMemory> slabs_;
};

// Slots of one size. Not thread-safe; nothing blocks.
class Slots {
 public:
  // `memory` outlives the slots; `pool` is their number in it. With `is_part` the memory is
  // divided. Throws Error where the budget holds not even one slot.
  Slots(Memory* memory, uint32_t pool, uint64_t slot_bytes, bool is_part, Log* log);

  // The file of slab `index` of pool `number`, in the memory's directory.
  static std::string slab_name(uint32_t number, uint64_t index) {
    return "slab-" + std::to_string(number) + "-" + std::to_string(index);
  }

  // A slot that nothing lies in, or none where the budget is spent.
  std::optional<uint32_t> take();
  void give_back(uint32_t slot) { free_.push_back(slot); }
  // Whether one lies ready; else take() must make a slab.
  bool has_free() const { return !free_.empty(); }

  uint64_t slot_bytes() const { return slot_bytes_; }
  uint64_t num_slots() const { return num_slots_; }
  uint64_t num_taken() const { return num_slots_ - free_.size(); }
  // Slots that the whole budget, or this pool's part of it, would hold.
  uint64_t max_slots() const;
  uint32_t slots_per_slab() const { return slots_per_slab_; }
  // Where slab `index` lies, for as long as the memory lives.
  std::byte* slab(size_t index) const { return bases_[index]; }
  std::byte* at(uint32_t slot) const {
    return bases_[slot / slots_per_slab_] + slot % slots_per_slab_ * slot_bytes_;
  }

  // Goes on with slabs that are there; end_restore() frees the slots that are not taken.
  void begin_restore(uint32_t num_slabs);
  void end_restore(const std::vector<bool>& is_taken);

 private:
  uint64_t slab_bytes() const { return slot_bytes_ * slots_per_slab_; }
  bool grow();
  void add_slab();

  Memory* const memory_;
  const uint32_t pool_;
  const uint64_t slot_bytes_;
  const bool is_part_;
  Log* const log_;
  uint32_t slots_per_slab_;
  uint64_t num_slots_ = 0;
  std::vector<std::byte*> bases_;
  std::vector<uint32_t> free_;
};

}  // namespace tengen::replay
