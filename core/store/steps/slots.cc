#include "store/steps/slots.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"

namespace tengen::store::engine {
namespace {

// The size of a slab: large enough for huge pages, small enough to divide a budget evenly.
constexpr uint64_t kSlabBytes = uint64_t{16} << 20;
// The minimum number of slabs in a budget, so that a small budget still serves several pools.
constexpr uint64_t kSlabsInBudget = 128;
// After the file system was full, try_allocate() checks it only every kMaxSkipped calls.
constexpr uint32_t kMaxSkipped = 16;

// Whether `directory` contains slabs of an earlier store.
bool has_slabs(const std::string& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (entry.path().filename().string().rfind("slab-", 0) == 0) return true;
  }
  return false;
}

}  // namespace

Memory::Memory(std::string directory, uint64_t budget_bytes)
    : directory_(std::move(directory)), budget_bytes_(budget_bytes) {
  if (!directory_.empty() && !has_slabs(directory_)) {
    transport::SharedMemory::check_room(directory_, budget_bytes_);
  }
}

std::byte* Memory::allocate(const std::string& name, uint64_t num_bytes) {
  slabs_.push_back(directory_.empty()
                       ? transport::SharedMemory::anonymous(num_bytes)
                       : transport::SharedMemory::adopt(directory_ + "/" + name, num_bytes));
  used_bytes_ += num_bytes;
  return slabs_.back().data();
}

std::byte* Memory::try_allocate(const std::string& name, uint64_t num_bytes) {
  if (!trouble_.empty() && ++num_skipped_ < kMaxSkipped) return nullptr;
  try {
    // Without this check, allocate() would clear page by page before it fails.
    if (!directory_.empty()) transport::SharedMemory::check_room(directory_, num_bytes);
    std::byte* slab = allocate(name, num_bytes);
    trouble_.clear();
    return slab;
  } catch (const Error& error) {
    trouble_ = error.what();
    num_skipped_ = 0;
    return nullptr;
  }
}

Slots::Slots(Memory* memory, uint32_t pool, uint64_t slot_bytes, Log* log)
    : memory_(memory), pool_(pool), slot_bytes_(slot_bytes), log_(log) {
  const uint64_t wanted = std::min(kSlabBytes, memory->budget_bytes() / kSlabsInBudget);
  slots_per_slab_ = static_cast<uint32_t>(std::max<uint64_t>(1, wanted / slot_bytes));
  memory->divide();
  if (max_slots() == 0) {
    throw Error("memory_bytes (" + std::to_string(memory->budget_bytes()) + ", a part of " +
                std::to_string(memory->part_bytes()) +
                " for each kind of steps) must hold chunks " + "of " + std::to_string(slot_bytes) +
                " bytes; raise it, or lower steps_per_chunk");
  }
}

std::optional<uint32_t> Slots::take() {
  if (free_.empty() && !grow()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

uint64_t Slots::max_slots() const {
  // Slot indices have 32 bits.
  const uint64_t most = UINT32_MAX / slots_per_slab_;
  return std::min(memory_->part_bytes() / slab_bytes(), most) * slots_per_slab_;
}

bool Slots::grow() {
  if (num_slots_ + slots_per_slab_ > max_slots()) return false;
  free_.reserve(num_slots_ + slots_per_slab_);
  std::byte* slab = memory_->try_allocate(slab_name(pool_, bases_.size()), slab_bytes());
  if (slab == nullptr) return false;
  add_slab(slab);
  if (log_ != nullptr) {
    log_->add(event::SlabsGrown{pool_, static_cast<uint32_t>(bases_.size())});
  }
  // Adds the lowest slot last, because slots are taken from the back.
  for (uint32_t i = slots_per_slab_; i-- > 0;) {
    free_.push_back(static_cast<uint32_t>(num_slots_) - slots_per_slab_ + i);
  }
  return true;
}

void Slots::begin_restore(uint32_t num_slabs) {
  const auto check_room = [&](bool has_room) {
    check(has_room, "memory_bytes", memory_->budget_bytes(),
          "must be enough for the store's content; raise it");
  };
  check_room(uint64_t{num_slabs} * slots_per_slab_ <= max_slots());
  for (uint32_t i = 0; i < num_slabs; ++i) {
    std::byte* const slab = memory_->allocate(slab_name(pool_, i), slab_bytes());
    check_room(slab != nullptr);
    add_slab(slab);
  }
}

void Slots::end_restore(const std::vector<bool>& is_taken) {
  // Slabs created during the restore, for steps from the log, have added their slots here.
  free_.clear();
  for (uint32_t slot = static_cast<uint32_t>(num_slots_); slot-- > 0;) {
    if (!is_taken[slot]) free_.push_back(slot);
  }
}

void Slots::add_slab(std::byte* slab) {
  bases_.push_back(slab);
  num_slots_ += slots_per_slab_;
}

}  // namespace tengen::store::engine
