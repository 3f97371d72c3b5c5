#pragma once
// The interface between a pool and the disk.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tengen::store::engine {

// A copy of one chunk from a slot of memory to its row on disk, or back.
struct Transfer {
  uint32_t pool = 0;
  uint32_t chunk = 0;
  uint32_t place = 0;     // index of the row in the pool's file
  uint32_t checksum = 0;  // CRC-32C of a row to read
  std::byte* memory = nullptr;
  uint64_t num_bytes = 0;  // the size of every row of the pool
  uint64_t room_bytes =
      0;  // for a save: the part of the disk's budget that is left for other rows of all pools
};

// The result of a transfer.
struct TransferResult {
  std::string error;         // empty on success
  uint32_t checksum = 0;     // CRC-32C of a row that was written
  bool is_shortage = false;  // whether a retry at the same row may succeed later
};

// Copies any number of rows at the same time. A transfer starts only after the log contains the
// changes that led to it, because until then its row or slot may belong to another chunk. Neither
// load() nor save() blocks; the engine's loaded() or saved() is called when a transfer has ended.
class Tier {
 public:
  virtual ~Tier() = default;
  // Reserves memory, so that the next `num_transfers` calls of load() and save() allocate none.
  virtual void reserve(size_t /*num_transfers*/) {}
  virtual void load(const Transfer& transfer) = 0;
  virtual void save(const Transfer& transfer) = 0;
};

// The disk of a store: one budget for the rows of all pools. Not thread-safe.
class Disk {
 public:
  // Sizes of slots and rows are multiples of kAlignment, so that direct I/O can transfer them.
  static constexpr uint64_t kAlignment = 4096;

  // `tier` must outlive the disk. If a row cannot be read, the items with its steps are removed.
  // With `has_checkpoints`, a row is not overwritten while a checkpoint refers to it. If no more
  // checkpoints are made, it is overwritten only when there is no other space.
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
  // Whether there is space for one more row.
  bool has_room(uint64_t row_bytes) const { return used_bytes_ + row_bytes <= budget_bytes_; }
  void add(uint64_t num_bytes) { used_bytes_ += num_bytes; }
  // Reports that a row could not be written for lack of space. The disk then accepts no more rows
  // than it has now, until regain().
  void give_back(uint64_t row_bytes) {
    is_short_ = true;
    used_bytes_ -= row_bytes;
    budget_bytes_ = used_bytes_;
  }
  // Reports that a row is bad, so that it is never used again.
  void give_up(uint64_t row_bytes) {
    used_bytes_ -= row_bytes;
    all_bytes_ -= std::min(row_bytes, all_bytes_);
    budget_bytes_ -= std::min(row_bytes, budget_bytes_);
  }
  // Reports that there is space again.
  void regain() {
    budget_bytes_ = all_bytes_;
    is_short_ = false;
  }
  // Whether callers that need a row wait for space, so that items need not be removed.
  bool waits_for_room() const { return is_short_ && makes_checkpoints_; }

 private:
  Tier* const tier_;
  uint64_t all_bytes_;  // the budget if the file system has enough space
  uint64_t budget_bytes_;
  const bool has_checkpoints_;
  bool makes_checkpoints_;
  bool is_short_ = false;  // the file system has less space than the budget
  uint64_t used_bytes_ = 0;
};

}  // namespace tengen::store::engine
