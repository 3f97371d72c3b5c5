#pragma once
// Tracks where the chunks of a pool are: in a slot of memory, in a row on disk, or in both.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "store/state/log.h"
#include "store/state/saved.h"
#include "store/steps/slots.h"
#include "store/steps/tier.h"

namespace tengen::store::engine {

// A place is a row of a file, with the size of a slot. It is reused when its chunk is gone; data on
// disk never moves. A chunk goes through these states:
//
//   begun -> complete -> being saved -> saved <-> evicted -> being loaded -> saved
//
// and can die in each of them; if it dies while it is being saved or loaded, its slot and place
// stay occupied until the end of the transfer. A place that a checkpoint may refer to is reused
// when the next checkpoint is complete; if no more checkpoints are made, it is reused when no other
// place is free. Not thread-safe; a call takes constant time unless its comment says otherwise.
class Residence {
 public:
  // `slots` and `disk` must outlive the object. `log` records every change.
  Residence(uint32_t pool, Slots* slots, Disk* disk, Log* log)
      : pool_(pool), slots_(slots), disk_(disk), log_(log) {}

  // Adds a chunk that its writer fills, in a slot that was taken. Returns the chunk's number.
  // Precondition: has_number().
  uint32_t begin(uint32_t slot);
  // Whether one more chunk can have a number; the length of a state's lists is limited.
  bool has_number() const { return !free_cells_.empty() || cells_.size() <= kMaxItems; }
  // Reports that the chunk is full and may be saved. May be called more than once.
  void complete(uint32_t chunk);
  // Whether the chunk is not complete yet.
  bool is_open(uint32_t chunk) const {
    return cells_[chunk].in != In::kComplete && cells_[chunk].place == kNowhere;
  }
  // Reports that nobody needs the chunk any more.
  void drop(uint32_t chunk);

  bool is_resident(uint32_t chunk) const {
    return cells_[chunk].slot != kNowhere && cells_[chunk].io != Io::kLoad;
  }
  bool is_loading(uint32_t chunk) const { return cells_[chunk].io == Io::kLoad; }
  // The slot of a resident chunk.
  uint32_t slot_of(uint32_t chunk) const { return cells_[chunk].slot; }

  // A pinned chunk is not evicted.
  void pin(uint32_t chunk);
  void unpin(uint32_t chunk);
  // Evicts the least recently pinned chunk. Returns its slot, or none if no chunk can be evicted.
  std::optional<uint32_t> evict();
  uint64_t num_evictable() const { return evictable_.size; }
  // The number of chunks in slots that are not on disk yet.
  uint64_t num_unsaved() const { return num_unsaved_; }
  // Whether a complete chunk waits to be saved, and whether there is a place for it.
  bool has_complete() const { return complete_.size > 0; }
  bool has_place() const { return !free_places_.empty() || has_new_place() || may_thaw(); }
  // The number of places that the next checkpoint frees, and whether it justifies a checkpoint.
  uint64_t num_frozen() const { return frozen_.size(); }
  bool has_enough_frozen() const {
    return num_frozen() >= std::clamp<uint64_t>(num_places_ / kPlacesPerFrozen, 1, kMaxFrozen);
  }

  // Begins a checkpoint of the chunks that are complete now.
  void begin_checkpoint();
  // The number of chunks in the checkpoint that are neither saved nor dropped yet.
  uint64_t num_of_checkpoint() const { return num_of_checkpoint_; }
  // The chunks saved since the checkpoint began. The log before the checkpoint lacks them.
  const std::vector<event::ChunkSaved>& saved_of_checkpoint() const { return saved_; }
  // The checkpoint's chunks that are neither saved nor dropped. Precondition: none is being saved.
  std::vector<uint32_t> rest_of_checkpoint() const;
  // Reports that the checkpoint is complete: places that held no chunk when it began are now free.
  // Takes time proportional to their number.
  void end_checkpoint();

  // Begins to save the oldest complete chunk. Precondition: has_complete() and has_place().
  Transfer begin_save();
  void end_save(uint32_t chunk, const TransferResult& result);
  // Begins to load a chunk that is not resident, into a slot that was taken.
  Transfer begin_load(uint32_t chunk, uint32_t slot);
  void end_load(uint32_t chunk, const TransferResult& result);

  // Restore saved chunks, which lie in some of `num_places` places. `live` are the chunks that
  // somebody needs, and `unfinished` those of them that are incomplete. The caller pins chunks
  // between the two calls. end_restore() returns, for each slot, whether it is taken.
  void begin_restore(std::span<const SavedChunk> chunks, uint32_t num_places);
  // Assigns `slot`, which was taken, to a chunk without a slot.
  void restore_slot(uint32_t chunk, uint32_t slot);
  std::vector<bool> end_restore(std::span<const uint32_t> live,
                                std::span<const uint32_t> unfinished);

 private:
  // The part of the places, 1 / kPlacesPerFrozen, whose release makes a checkpoint worthwhile. A
  // checkpoint per freed place would write much data per row, but a checkpoint for many places
  // leaves them unused until then.
  static constexpr uint64_t kPlacesPerFrozen = 16;
  static constexpr uint64_t kMaxFrozen = 1024;

  enum class Io : uint8_t { kNone, kSave, kLoad };
  enum class In : uint8_t { kNone, kComplete, kEvictable };  // the list that contains a cell
  struct Cell {
    uint32_t slot = kNowhere;
    uint32_t place = kNowhere;
    uint32_t checksum = 0;  // CRC-32C of the row on disk
    uint32_t num_pins = 0;
    uint32_t before = kNowhere;  // `before` and `after` are the neighbours in its list
    uint32_t after = kNowhere;
    uint32_t checkpoint = 0;  // number of checkpoints begun before the chunk was complete
    Io io = Io::kNone;
    In in = In::kNone;
    bool is_dead = false;
  };
  struct List {
    uint32_t first = kNowhere;
    uint32_t last = kNowhere;
    uint64_t size = 0;
  };

  // The length of a state's lists also limits the number of places.
  bool has_new_place() const {
    return num_places_ <= kMaxItems && disk_->has_room(slots_->slot_bytes());
  }
  // Whether a place to which a checkpoint may refer may be reused if no other place is free.
  bool may_thaw() const { return !disk_->makes_checkpoints() && !frozen_.empty(); }
  uint32_t take_place();
  List& list_of(In in) { return in == In::kComplete ? complete_ : evictable_; }
  void link(uint32_t chunk, In in, bool at_front = false);
  void unlink(uint32_t chunk);
  // Makes the chunk evictable if it is saved, in memory and not pinned.
  void let_go(uint32_t chunk);
  bool is_saved(const Cell& cell) const { return cell.place != kNowhere && cell.io != Io::kSave; }
  void add_complete(uint32_t chunk);
  // Subtracts a chunk that is saved or no longer needed from the counts of unsaved complete chunks.
  void remove_complete(const Cell& cell);
  void free(uint32_t chunk);
  Transfer transfer_of(uint32_t chunk) const;

  const uint32_t pool_;
  Slots* const slots_;
  Disk* const disk_;
  Log* const log_;
  std::vector<Cell> cells_;
  std::vector<uint32_t> free_cells_;
  uint32_t num_places_ = 0;
  std::vector<uint32_t> free_places_;
  std::vector<uint32_t> short_places_;  // places for which the disk had no space
  struct Frozen {
    uint32_t place;
    uint32_t checkpoint;  // number of checkpoints begun before the place was freed
  };
  std::deque<Frozen> frozen_;
  uint64_t num_unsaved_ = 0;
  uint64_t num_complete_ = 0;  // complete chunks that are not saved
  uint32_t num_checkpoints_ = 0;
  uint64_t num_of_checkpoint_ = 0;
  std::vector<event::ChunkSaved> saved_;
  List complete_;   // complete chunks that are not saved, the oldest first
  List evictable_;  // saved chunks that are not pinned, the least recently pinned first
};

}  // namespace tengen::store::engine
