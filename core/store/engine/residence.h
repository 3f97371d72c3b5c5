#pragma once
// Where the chunks of a pool are: in a slot of memory, in a place on disk, or in both.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "store/engine/log.h"
#include "store/engine/saved.h"
#include "store/engine/slots.h"
#include "store/engine/tier.h"

namespace tengen::store::engine {

// Places are rows of a file, as large as slots, used again when their chunk is gone: nothing on
// disk is ever moved. A chunk goes through these states:
//
//   begun -> complete -> being saved -> saved <-> evicted -> being loaded -> saved
//
// and can die in each of them; while it is being saved or loaded, slot and place outlive it. A
// place that a checkpoint may name is used again when the next checkpoint is made; where none is
// made any more, when there is no other. Not thread-safe; every call is of constant time but where
// it says otherwise.
class Residence {
 public:
  // `slots` and `disk` outlive it; `log` learns of every change that has come about.
  Residence(uint32_t pool, Slots* slots, Disk* disk, Log* log)
      : pool_(pool), slots_(slots), disk_(disk), log_(log) {}

  // A new chunk, which its writer fills in a slot that was taken.
  uint32_t begin(uint32_t slot);
  // It is filled, and may be saved. It may be told more than once.
  void complete(uint32_t chunk);
  // Whether it is not complete yet.
  bool is_open(uint32_t chunk) const {
    return cells_[chunk].in != In::kComplete && cells_[chunk].place == kNowhere;
  }
  // Nobody needs it any more.
  void drop(uint32_t chunk);

  bool is_resident(uint32_t chunk) const {
    return cells_[chunk].slot != kNowhere && cells_[chunk].io != Io::kLoad;
  }
  bool is_loading(uint32_t chunk) const { return cells_[chunk].io == Io::kLoad; }
  // Of one that is resident.
  uint32_t slot_of(uint32_t chunk) const { return cells_[chunk].slot; }

  // A chunk with pins is not evicted.
  void pin(uint32_t chunk);
  void unpin(uint32_t chunk);
  // Takes the slot of the chunk whose last pin is the longest ago, or none where none can go.
  std::optional<uint32_t> evict();
  uint64_t num_evictable() const { return evictable_.size; }
  // Chunks in slots that are on no disk yet.
  uint64_t num_unsaved() const { return num_unsaved_; }
  // Whether a complete chunk waits to be saved, and whether there is a place for it.
  bool has_complete() const { return complete_.size > 0; }
  bool has_place() const {
    return !free_places_.empty() || disk_->has_room(slots_->slot_bytes()) || may_thaw();
  }
  // Places that wait for a checkpoint, and whether they are worth one.
  uint64_t num_frozen() const { return frozen_.size(); }
  bool has_enough_frozen() const {
    return num_frozen() >= std::clamp<uint64_t>(num_places_ / kPlacesPerFrozen, 1, kMaxFrozen);
  }

  // A checkpoint begins: chunks that are complete belong to it.
  void begin_checkpoint();
  // Those of them that are neither saved nor dropped yet.
  uint64_t num_of_checkpoint() const { return num_of_checkpoint_; }
  // Those that were saved since it began, and the log does not tell of before.
  const std::vector<event::ChunkSaved>& saved_of_checkpoint() const { return saved_; }
  // Those that are neither, where none is being saved.
  std::vector<uint32_t> rest_of_checkpoint() const;
  // It is made: places that nobody had when it began are free. In the time of their number.
  void end_checkpoint();

  // The oldest complete chunk goes to a place. Precondition: has_complete() and has_place().
  Transfer begin_save();
  void end_save(uint32_t chunk, const TransferResult& result);
  // A chunk that is not resident comes into a slot that was taken.
  Transfer begin_load(uint32_t chunk, uint32_t slot);
  void end_load(uint32_t chunk, const TransferResult& result);

  // Goes on with chunks that were saved, in some of so many places; those of `live` are there, of
  // which `unfinished` are not complete. Pins come between the two calls. Returns which slots are
  // taken.
  void begin_restore(std::span<const SavedChunk> chunks, uint32_t num_places);
  // A chunk that is in no slot is in this one, which was taken.
  void restore_slot(uint32_t chunk, uint32_t slot);
  std::vector<bool> end_restore(std::span<const uint32_t> live,
                                std::span<const uint32_t> unfinished);

 private:
  // A checkpoint for each row would cost many writes a row; waiting for many, as much of the disk.
  static constexpr uint64_t kPlacesPerFrozen = 16;
  static constexpr uint64_t kMaxFrozen = 1024;

  enum class Io : uint8_t { kNone, kSave, kLoad };
  enum class In : uint8_t { kNone, kComplete, kEvictable };  // which list
  struct Cell {
    uint32_t slot = kNowhere;
    uint32_t place = kNowhere;
    uint32_t checksum = 0;  // of what lies in the place
    uint32_t num_pins = 0;
    uint32_t before = kNowhere;  // in its list
    uint32_t after = kNowhere;
    uint32_t checkpoint = 0;  // the number of those that had begun when it was complete
    Io io = Io::kNone;
    In in = In::kNone;
    bool is_dead = false;
  };
  struct List {
    uint32_t first = kNowhere;
    uint32_t last = kNowhere;
    uint64_t size = 0;
  };

  // Whether a place that a checkpoint may name can be had, where there is no other.
  bool may_thaw() const { return !disk_->makes_checkpoints() && !frozen_.empty(); }
  uint32_t take_place();
  List& list_of(In in) { return in == In::kComplete ? complete_ : evictable_; }
  void link(uint32_t chunk, In in, bool at_front = false);
  void unlink(uint32_t chunk);
  // Puts it where eviction finds it, unless something keeps it.
  void let_go(uint32_t chunk);
  bool is_saved(const Cell& cell) const { return cell.place != kNowhere && cell.io != Io::kSave; }
  void add_complete(uint32_t chunk);
  // A complete chunk is saved, or nobody needs it.
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
  struct Frozen {
    uint32_t place;
    uint32_t checkpoint;  // the number of those that had begun when it was freed
  };
  std::deque<Frozen> frozen_;
  uint64_t num_unsaved_ = 0;
  uint64_t num_complete_ = 0;  // of those
  uint32_t num_checkpoints_ = 0;
  uint64_t num_of_checkpoint_ = 0;
  std::vector<event::ChunkSaved> saved_;
  List complete_;   // not saved, the oldest first
  List evictable_;  // saved, without pins, those whose last pin is the longest ago first
};

}  // namespace tengen::store::engine
