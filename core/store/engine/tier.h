#pragma once
// What a pool asks of the disk below its memory.

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
  uint64_t num_bytes = 0;  // of every row of the pool
};

// How a transfer ended.
struct TransferResult {
  std::string error;      // empty: well
  uint32_t checksum = 0;  // of a row that was written
};

// Copies rows, any number at a time, once what led to them is logged: a row, or a slot, may have
// been another chunk's until then. Neither call blocks; the engine is told of each end by its
// loaded() or saved(), later.
class Tier {
 public:
  virtual ~Tier() = default;
  virtual void load(const Transfer& transfer) = 0;
  virtual void save(const Transfer& transfer) = 0;
};

// The disk of a store: one budget for the rows of all pools. Not thread-safe.
class Disk {
 public:
  // Slots and rows are multiples of it, so that a disk reads and writes them in place.
  static constexpr uint64_t kAlignment = 4096;

  // `tier` outlives the disk. Rows that cannot be read cost the items that have them, or, with
  // `refuses_damage`, are an Error to who draws them. With `has_checkpoints` rows stay what they
  // are until no checkpoint names them, or, once no more are made, until there is no other room.
  Disk(Tier* tier, uint64_t budget_bytes, bool refuses_damage = false, bool has_checkpoints = false)
      : tier_(tier),
        budget_bytes_(budget_bytes),
        refuses_damage_(refuses_damage),
        has_checkpoints_(has_checkpoints),
        makes_checkpoints_(has_checkpoints) {}

  Tier& tier() const { return *tier_; }
  uint64_t budget_bytes() const { return budget_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }
  bool refuses_damage() const { return refuses_damage_; }
  bool has_checkpoints() const { return has_checkpoints_; }
  void give_up_checkpoints() { makes_checkpoints_ = false; }
  bool makes_checkpoints() const { return makes_checkpoints_; }
  // Whether there is room for one row more.
  bool has_room(uint64_t row_bytes) const { return used_bytes_ + row_bytes <= budget_bytes_; }
  void add(uint64_t num_bytes) { used_bytes_ += num_bytes; }
  // A row could not be written: it is given up, and no more than the others are there from now on.
  void give_up(uint64_t row_bytes) {
    used_bytes_ -= row_bytes;
    budget_bytes_ = used_bytes_;
  }

 private:
  Tier* const tier_;
  uint64_t budget_bytes_;
  const bool refuses_damage_;
  const bool has_checkpoints_;
  bool makes_checkpoints_;
  uint64_t used_bytes_ = 0;
};

}  // namespace tengen::store::engine
