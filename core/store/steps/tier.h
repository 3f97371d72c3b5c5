#pragma once
// What a pool asks of the disk below its memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tengen::store::engine {

// A chunk on its way between a slot of memory and its row on disk.
struct Transfer {
  uint32_t pool = 0;
  uint32_t chunk = 0;
  uint32_t place = 0;     // the row, in the file of the pool
  uint32_t checksum = 0;  // CRC-32C of a row that is read
  std::byte* memory = nullptr;
  uint64_t num_bytes = 0;   // the size of every row of the pool
  uint64_t room_bytes = 0;  // of a save: what the disk's budget leaves for other rows of all pools
};

// How a transfer ended.
struct TransferResult {
  std::string error;         // empty: it succeeded
  uint32_t checksum = 0;     // of a row that was written
  bool is_shortage = false;  // whether it may succeed later, at the same row too
};

// Copies rows, any number at a time, but only after the log holds the changes that led to a
// transfer: until then a row or a slot may belong to another chunk. Neither call blocks; the
// engine's loaded() or saved() is called later, when a transfer has ended.
class Tier {
 public:
  virtual ~Tier() = default;
  // Sees to it that the next `num_transfers` calls of load() and save() need no more memory.
  virtual void reserve(size_t /*num_transfers*/) {}
  virtual void load(const Transfer& transfer) = 0;
  virtual void save(const Transfer& transfer) = 0;
};

// The disk of a store: one budget for the rows of all pools. Not thread-safe.
class Disk {
 public:
  // Sizes of slots and rows are multiples of this, so that a disk reads and writes them in place.
  static constexpr uint64_t kAlignment = 4096;

  // `tier` outlives the disk. Where a row cannot be read, its items are removed. With
  // `has_checkpoints` a row is not overwritten while a checkpoint names it, or, once no more
  // checkpoints are made, while there is other room.
  Disk(Tier* tier, uint64_t budget_bytes, bool has_checkpoints = false)
      : tier_(tier),
        all_bytes_(budget_bytes),
        budget_bytes_(budget_bytes),
        has_checkpoints_(has_checkpoints),
        makes_checkpoints_(has_checkpoints) {}

  Tier& tier() const { return *tier_; }
  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  bool has_checkpoints() const { return has_checkpoints_; }
  void give_up_checkpoints() { makes_checkpoints_ = false; }
  bool makes_checkpoints() const { return makes_checkpoints_; }
  uint64_t room_bytes() const { return budget_bytes_ - std::min(used_bytes_, budget_bytes_); }
  // Whether there is room for one row more.
  bool has_room(uint64_t row_bytes) const { return used_bytes_ + row_bytes <= budget_bytes_; }
  void add(uint64_t num_bytes) { used_bytes_ += num_bytes; }
  // Says that a row could not be written for want of room: the disk takes no more rows than it has
  // now, until regain().
  void give_back(uint64_t row_bytes) {
    is_short_ = true;
    used_bytes_ -= row_bytes;
    budget_bytes_ = used_bytes_;
  }
  // Says that a row is bad, and never used again.
  void give_up(uint64_t row_bytes) {
    used_bytes_ -= row_bytes;
    all_bytes_ -= std::min(row_bytes, all_bytes_);
    budget_bytes_ -= std::min(row_bytes, budget_bytes_);
  }
  // Says that there is room again.
  void regain() {
    budget_bytes_ = all_bytes_;
    is_short_ = false;
  }
  // Whether callers that need a row wait for room, instead of removing items that would be kept.
  bool waits_for_room() const { return is_short_ && makes_checkpoints_; }

 private:
  Tier* const tier_;
  uint64_t all_bytes_;  // the budget where the file system has so much
  uint64_t budget_bytes_;
  const bool has_checkpoints_;
  bool makes_checkpoints_;
  bool is_short_ = false;  // the file system has less room than the budget
  uint64_t used_bytes_ = 0;
};

}  // namespace tengen::store::engine
