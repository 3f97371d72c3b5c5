#pragma once
// Where the chunks of a pool are: in a slot of memory, in a place on disk, or in both.

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

// Places are rows of a file, as large as slots, used again when the chunk in it is gone: nothing on
// disk is ever moved. A chunk goes through these states:
//
//   begun -> complete -> being saved -> saved <-> evicted -> being loaded -> saved
//
// and can die in each of them; while it is being saved or loaded, its slot and place outlive it. A
// place that a checkpoint may name is used again when the next checkpoint is made; once no more
// checkpoints are made, it is used again when no other place is free. Not thread-safe; a call takes
// constant time unless it says otherwise.
class Residence {
 public:
  // `slots` and `disk` outlive the residence; `log` records every change.
  Residence(uint32_t pool, Slots* slots, Disk* disk, Log* log)
      : pool_(pool), slots_(slots), disk_(disk), log_(log) {}

  // Adds a chunk that its writer fills in a slot that was taken; returns its number. Precondition:
  // has_number().
  uint32_t begin(uint32_t slot);
  // Whether there is a number for one more chunk, as no state may name more.
  bool has_number() const { return !free_cells_.empty() || cells_.size() <= kMaxItems; }
  // Says that the chunk is filled, and may be saved. May be called more than once.
  void complete(uint32_t chunk);
  // Whether the chunk is not complete yet.
  bool is_open(uint32_t chunk) const {
    return cells_[chunk].in != In::kComplete && cells_[chunk].place == kNowhere;
  }
  // Says that nobody needs the chunk any more.
  void drop(uint32_t chunk);

  bool is_resident(uint32_t chunk) const {
    return cells_[chunk].slot != kNowhere && cells_[chunk].io != Io::kLoad;
  }
  bool is_loading(uint32_t chunk) const { return cells_[chunk].io == Io::kLoad; }
  // The slot of a resident chunk.
  uint32_t slot_of(uint32_t chunk) const { return cells_[chunk].slot; }

  // A chunk with pins is not evicted.
  void pin(uint32_t chunk);
  void unpin(uint32_t chunk);
  // Evicts the chunk whose last pin is the longest ago, and returns its slot; none where no chunk
  // can be evicted.
  std::optional<uint32_t> evict();
  uint64_t num_evictable() const { return evictable_.size; }
  // How many chunks in slots are not on disk yet.
  uint64_t num_unsaved() const { return num_unsaved_; }
  // Whether a complete chunk waits to be saved, and whether there is a place for it.
  bool has_complete() const { return complete_.size > 0; }
  bool has_place() const { return !free_places_.empty() || has_new_place() || may_thaw(); }
  // How many places wait for a checkpoint to be free, and whether they are worth making one.
  uint64_t num_frozen() const { return frozen_.size(); }
  bool has_enough_frozen() const {
    return num_frozen() >= std::clamp<uint64_t>(num_places_ / kPlacesPerFrozen, 1, kMaxFrozen);
  }

  // Begins a checkpoint: chunks that are complete now belong to it.
  void begin_checkpoint();
  // How many of the checkpoint's chunks are neither saved nor dropped yet.
  uint64_t num_of_checkpoint() const { return num_of_checkpoint_; }
  // Chunks that were saved since the checkpoint began. The log before it does not have them.
  const std::vector<event::ChunkSaved>& saved_of_checkpoint() const { return saved_; }
  // The checkpoint's chunks that are neither saved nor dropped. Precondition: none is being saved.
  std::vector<uint32_t> rest_of_checkpoint() const;
  // Says that the checkpoint is made: places that no chunk had when it began are free now. Takes
  // time by the number of these places.
  void end_checkpoint();

  // Begins to save the oldest complete chunk. Precondition: has_complete() and has_place().
  Transfer begin_save();
  void end_save(uint32_t chunk, const TransferResult& result);
  // Begins to load a chunk that is not resident into a slot that was taken.
  Transfer begin_load(uint32_t chunk, uint32_t slot);
  void end_load(uint32_t chunk, const TransferResult& result);

  // Goes on with saved chunks, which lie in some of `num_places` places. `live` are the chunks that
  // somebody needs; of these, `unfinished` are not complete. Chunks are pinned between the two
  // calls. Returns which slots are taken.
  void begin_restore(std::span<const SavedChunk> chunks, uint32_t num_places);
  // Gives a chunk that is in no slot this one, which was taken.
  void restore_slot(uint32_t chunk, uint32_t slot);
  std::vector<bool> end_restore(std::span<const uint32_t> live,
                                std::span<const uint32_t> unfinished);

 private:
  // A checkpoint for every freed place would write much for each row; a checkpoint for many wastes
  // that many places until then.
  static constexpr uint64_t kPlacesPerFrozen = 16;
  static constexpr uint64_t kMaxFrozen = 1024;

  enum class Io : uint8_t { kNone, kSave, kLoad };
  enum class In : uint8_t { kNone, kComplete, kEvictable };  // which list
  struct Cell {
    uint32_t slot = kNowhere;
    uint32_t place = kNowhere;
    uint32_t checksum = 0;  // of the row in the place
    uint32_t num_pins = 0;
    uint32_t before = kNowhere;  // in its list
    uint32_t after = kNowhere;
    uint32_t checkpoint = 0;  // how many checkpoints had begun when the chunk was complete
    Io io = Io::kNone;
    In in = In::kNone;
    bool is_dead = false;
  };
  struct List {
    uint32_t first = kNowhere;
    uint32_t last = kNowhere;
    uint64_t size = 0;
  };

  // No state may name more places.
  bool has_new_place() const {
    return num_places_ <= kMaxItems && disk_->has_room(slots_->slot_bytes());
  }
  // Whether a place that a checkpoint may name may be used, where no other is free.
  bool may_thaw() const { return !disk_->makes_checkpoints() && !frozen_.empty(); }
  uint32_t take_place();
  List& list_of(In in) { return in == In::kComplete ? complete_ : evictable_; }
  void link(uint32_t chunk, In in, bool at_front = false);
  void unlink(uint32_t chunk);
  // Makes the chunk evictable, unless something keeps it.
  void let_go(uint32_t chunk);
  bool is_saved(const Cell& cell) const { return cell.place != kNowhere && cell.io != Io::kSave; }
  void add_complete(uint32_t chunk);
  // Counts a complete chunk no more, as it is saved or nobody needs it.
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
  std::vector<uint32_t> short_places_;  // for which the disk had no room
  struct Frozen {
    uint32_t place;
    uint32_t checkpoint;  // how many checkpoints had begun when the place was freed
  };
  std::deque<Frozen> frozen_;
  uint64_t num_unsaved_ = 0;
  uint64_t num_complete_ = 0;  // unsaved chunks that are complete
  uint32_t num_checkpoints_ = 0;
  uint64_t num_of_checkpoint_ = 0;
  std::vector<event::ChunkSaved> saved_;
  List complete_;   // not saved, the oldest first
  List evictable_;  // saved, without pins, those whose last pin is the longest ago first
};

}  // namespace tengen::store::engine
