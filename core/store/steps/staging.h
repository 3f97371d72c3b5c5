#pragma once
// The disk side of a pool: saves chunks that writers have filled, and loads chunks for loans.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/steps/residence.h"
#include "store/steps/slots.h"
#include "store/steps/tier.h"
#include "store/tables/streams.h"

namespace tengen::store::engine {

// Where the chunks of samples were when their loan began. Counted per piece, so a chunk with
// several samples counts several times.
struct ChunkReads {
  uint64_t num_hits = 0;    // pieces with the chunk in memory
  uint64_t num_misses = 0;  // pieces with the chunk on disk, or being loaded

  void operator+=(const ChunkReads& more) {
    num_hits += more.num_hits;
    num_misses += more.num_misses;
  }
};

// Not thread-safe; nothing blocks. Chunks are saved in the order in which they become complete,
// when half of the memory is used or for a checkpoint. So a store that fits in memory writes to
// disk only for checkpoints. Unsaved chunks must not use all of the memory, so that loans do not
// wait for writers; but each writer may have one chunk even if memory is too small for that.
class Staging {
 public:
  // `slots` and `disk` must outlive the staging.
  Staging(uint32_t pool, Slots* slots, Disk* disk, Log* log)
      : pool_(pool), slots_(slots), disk_(disk), residence_(pool, slots, disk, log) {}

  // Takes a chunk for a writer. Returns none until a save has ended or room has been made. A writer
  // without a chunk to fill gets one even if loans need the memory, because it would otherwise wait
  // for the `num_beside` other writers, which may be idle. Each of these may also have one chunk.
  std::optional<uint32_t> begin_chunk(uint64_t num_beside);
  // Tracks the locations of the chunks. Only this class starts transfers, pins and evictions there.
  Residence& residence() { return residence_; }
  const Residence& residence() const { return residence_; }

  // Announces loans of up to `num_chunks` chunks, until expect_no_more(). Memory is reserved for
  // the largest loan of all sessions.
  void expect(uint32_t session, uint64_t num_chunks) {
    uint64_t& most = expected_[session];
    most = std::max(most, num_chunks);
    reserve_ = std::max(reserve_, num_chunks);
  }
  void expect_no_more(uint32_t session);
  // Reports that nobody needs a chunk any more.
  void drop(uint32_t chunk) {
    residence_.drop(chunk);
    has_news_ = true;
  }
  // Whether a fetch may begin; false while an earlier one waits for memory.
  bool can_fetch() const { return !queued_; }
  // Loads the chunks of `pieces` into memory until end_fetch(). Precondition: can_fetch().
  void fetch(uint64_t lease, std::span<const Piece> pieces);
  enum class Fetch { kUnderWay, kReady, kDamaged };
  Fetch state_of(uint64_t lease) const;
  void end_fetch(uint64_t lease);
  // The unreadable chunks of a damaged fetch.
  const std::vector<uint32_t>& damaged_of(uint64_t lease) const {
    return fetches_.at(lease).damaged;
  }
  // The counts of a fetch that is ready.
  const ChunkReads& reads_of(uint64_t lease) const { return fetches_.at(lease).reads; }

  // Starts the saves and loads that can start now.
  void advance();
  bool is_saving() const { return num_saves_ > 0; }
  // Whether writers, or a fetch, must wait until items are removed, because the disk's budget is
  // used up. With checkpoints, only until enough places are freed to be worth a checkpoint.
  bool needs_room() const {
    return num_saves_ == 0 && !residence_.has_place() && !residence_.has_enough_frozen() &&
           !disk_->waits_for_room();
  }
  bool fetch_needs_room() const {
    return queued_ && needs_room() && residence_.num_unsaved() > max_unsaved();
  }
  // For a checkpoint that the residence has begun: whether its chunks are saved, and whether the
  // disk has no place for them.
  bool has_checkpoint_saved() const { return residence_.num_of_checkpoint() == 0; }
  bool is_checkpoint_stuck() const {
    return !has_checkpoint_saved() && num_saves_ == 0 && !residence_.has_place();
  }
  // Whether waiting callers can continue only after the next checkpoint. `has_items` says whether
  // there are items that could be removed to make room.
  bool wants_checkpoint(bool has_items) const {
    return num_saves_ == 0 && wants_saves() && residence_.has_complete() &&
           !residence_.has_place() && residence_.num_frozen() > 0 &&
           (residence_.has_enough_frozen() || !has_items);
  }

  // Report that a load or a save has ended; advance() must follow. loaded() returns whether a
  // waiting caller may continue.
  bool loaded(uint32_t chunk, const TransferResult& result);
  void saved(uint32_t chunk, const TransferResult& result);

  // As in Residence. Between begin_restore() and end_restore(), loans fetch with resume_fetch().
  void resume_fetch(uint64_t lease, std::span<const Piece> pieces);
  void end_restore(std::span<const uint32_t> live, std::span<const uint32_t> unfinished);

 private:
  struct Pins {
    std::vector<uint32_t> chunks;  // one chunk per piece
    uint64_t num_missing = 0;      // distinct chunks not in memory
    bool has_slots = false;
    ChunkReads reads;
    std::vector<uint32_t> damaged;
  };

  uint64_t max_unsaved() const;
  bool wants_saves() const;
  std::optional<uint32_t> take_slot();
  void start_saves();
  // Begins to load all missing chunks, or none if memory cannot hold all of them.
  bool start_fetch(uint64_t lease, Pins& pins);

  const uint32_t pool_;
  Slots* const slots_;
  Disk* const disk_;
  Residence residence_;
  std::unordered_map<uint32_t, uint64_t> expected_;  // chunks per loan, by session
  uint64_t reserve_ = 0;                             // maximum of expected_
  uint64_t num_saves_ = 0;                           // saves in progress
  std::unordered_map<uint64_t, Pins> fetches_;       // by lease, until end_fetch()
  std::optional<uint64_t> queued_;                   // lease of the fetch that waits for memory
  bool has_news_ = false;  // whether memory may have become free since the last attempt
  std::unordered_map<uint32_t, std::vector<uint64_t>>
      awaited_;                    // leases of waiting fetches, by the chunk that is being loaded
  std::vector<uint32_t> missing_;  // reused to save allocations
  std::vector<uint32_t> taken_;
};

}  // namespace tengen::store::engine
