#include "replay/pool.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::replay {
namespace {

// Large enough for huge pages and few mappings, small enough that pools share a budget well.
constexpr uint64_t kSlabBytes = uint64_t{16} << 20;
// Of the budget, so that a small one still serves several pools.
constexpr uint64_t kSlabsInBudget = 16;

}  // namespace

std::byte* Memory::allocate(const std::string& name, uint64_t num_bytes) {
  slabs_.push_back(directory_.empty()
                       ? ipc::SharedMemory::anonymous(num_bytes)
                       : ipc::SharedMemory::create(directory_ + "/" + name, num_bytes));
  used_bytes_ += num_bytes;
  return slabs_.back().data();
}

Pool::Pool(Schema schema, Memory* memory, uint32_t number)
    : schema_(std::move(schema)),
      memory_(memory),
      streams_(schema_.steps_per_chunk()),
      number_(number) {
  const uint64_t chunk = schema_.chunk_bytes();
  const uint64_t wanted = std::min(kSlabBytes, memory->budget_bytes() / kSlabsInBudget);
  slots_per_slab_ = static_cast<uint32_t>(std::max<uint64_t>(1, wanted / chunk));
  if (memory->free_bytes() < chunk * slots_per_slab_) {
    throw Error("memory_bytes (" + std::to_string(memory->budget_bytes()) + ", " +
                std::to_string(memory->free_bytes()) + " of them free) must hold chunks of " +
                std::to_string(chunk) + " bytes; raise it, or lower steps_per_chunk");
  }
}

std::optional<uint32_t> Pool::take_slot() {
  if (free_slots_.empty()) reclaim();
  if (free_slots_.empty() && !grow()) return std::nullopt;
  const uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

void Pool::reclaim() {
  for (const uint32_t slot : streams_.take_free_slots()) free_slots_.push_back(slot);
}

bool Pool::grow() {
  const uint64_t num_bytes = schema_.chunk_bytes() * slots_per_slab_;
  if (memory_->free_bytes() < num_bytes) return false;
  bases_.push_back(memory_->allocate(slab_name(number_, bases_.size()), num_bytes));
  // The lowest first, as they are taken from the back.
  for (uint32_t i = slots_per_slab_; i-- > 0;) {
    free_slots_.push_back(static_cast<uint32_t>(num_slots_) + i);
  }
  num_slots_ += slots_per_slab_;
  return true;
}

}  // namespace tengen::replay
