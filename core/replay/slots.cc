#include "replay/slots.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::replay {
namespace {

// Large enough for huge pages and few mappings, small enough that pools share a budget well.
constexpr uint64_t kSlabBytes = uint64_t{16} << 20;
// Of the budget, so that a small one still serves several pools, and more where each has a part.
constexpr uint64_t kSlabsInBudget = 16;
constexpr uint64_t kSlabsInParts = 128;

}  // namespace

std::byte* Memory::allocate(const std::string& name, uint64_t num_bytes) {
  slabs_.push_back(directory_.empty()
                       ? ipc::SharedMemory::anonymous(num_bytes)
                       : ipc::SharedMemory::adopt(directory_ + "/" + name, num_bytes));
  used_bytes_ += num_bytes;
  return slabs_.back().data();
}

Slots::Slots(Memory* memory, uint32_t pool, uint64_t slot_bytes, bool is_part, Log* log)
    : memory_(memory), pool_(pool), slot_bytes_(slot_bytes), is_part_(is_part), log_(log) {
  const uint64_t num_slabs = is_part ? kSlabsInParts : kSlabsInBudget;
  const uint64_t wanted = std::min(kSlabBytes, memory->budget_bytes() / num_slabs);
  slots_per_slab_ = static_cast<uint32_t>(std::max<uint64_t>(1, wanted / slot_bytes));
  if (is_part) memory->divide();
  if (std::min(memory->free_bytes(), memory->part_bytes()) < slab_bytes()) {
    throw Error("memory_bytes (" + std::to_string(memory->budget_bytes()) + ", " +
                std::to_string(memory->free_bytes()) + " of them free) must hold chunks of " +
                std::to_string(slot_bytes) + " bytes; raise it, or lower steps_per_chunk");
  }
}

std::optional<uint32_t> Slots::take() {
  if (free_.empty() && !grow()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

uint64_t Slots::max_slots() const {
  if (!is_part_) return memory_->budget_bytes() / slot_bytes_;
  return memory_->part_bytes() / slab_bytes() * slots_per_slab_;
}

bool Slots::grow() {
  if (memory_->free_bytes() < slab_bytes()) return false;
  if (is_part_ && num_slots_ + slots_per_slab_ > max_slots()) return false;
  add_slab();
  if (log_ != nullptr) {
    log_->add(event::SlabsGrown{pool_, static_cast<uint32_t>(bases_.size())});
  }
  // The lowest first, as they are taken from the back.
  for (uint32_t i = slots_per_slab_; i-- > 0;) {
    free_.push_back(static_cast<uint32_t>(num_slots_) - slots_per_slab_ + i);
  }
  return true;
}

void Slots::begin_restore(uint32_t num_slabs) {
  check(num_slabs * slab_bytes() <= memory_->free_bytes(), "memory_bytes", memory_->budget_bytes(),
        "must hold what the store held; raise it");
  for (uint32_t i = 0; i < num_slabs; ++i) add_slab();
}

void Slots::end_restore(const std::vector<bool>& is_taken) {
  for (uint32_t slot = static_cast<uint32_t>(num_slots_); slot-- > 0;) {
    if (!is_taken[slot]) free_.push_back(slot);
  }
}

void Slots::add_slab() {
  bases_.push_back(memory_->allocate(slab_name(pool_, bases_.size()), slab_bytes()));
  num_slots_ += slots_per_slab_;
}

}  // namespace tengen::replay
