#include "store/steps/residence.h"

#include <algorithm>

#include "store/tables/slot_set.h"

namespace tengen::store::engine {

uint32_t Residence::begin(uint32_t slot) {
  const uint32_t chunk = take_slot(&cells_, &free_cells_);
  cells_[chunk].slot = slot;
  ++num_unsaved_;
  if (log_ != nullptr) log_->add(event::ChunkBegun{pool_, chunk, slot, 0});
  return chunk;
}

void Residence::complete(uint32_t chunk) {
  if (is_open(chunk)) add_complete(chunk);
}

void Residence::add_complete(uint32_t chunk) {
  link(chunk, In::kComplete);
  cells_[chunk].checkpoint = num_checkpoints_;
  ++num_complete_;
}

void Residence::remove_complete(const Cell& cell) {
  --num_complete_;
  if (cell.checkpoint < num_checkpoints_) --num_of_checkpoint_;
}

void Residence::drop(uint32_t chunk) {
  Cell& cell = cells_[chunk];
  if (cell.in == In::kComplete || cell.io == Io::kSave) remove_complete(cell);
  if (cell.io == Io::kNone) {
    free(chunk);
  } else {
    cell.is_dead = true;
  }
}

void Residence::free(uint32_t chunk) {
  unlink(chunk);
  Cell& cell = cells_[chunk];
  if (cell.slot != kNowhere) slots_->give_back(cell.slot);
  if (cell.slot != kNowhere && !is_saved(cell)) --num_unsaved_;
  if (cell.place != kNowhere && disk_->has_checkpoints()) {
    frozen_.push_back({cell.place, num_checkpoints_});
  } else if (cell.place != kNowhere) {
    free_places_.push_back(cell.place);
  }
  cell = Cell();
  free_cells_.push_back(chunk);
}

void Residence::pin(uint32_t chunk) {
  if (cells_[chunk].in == In::kEvictable) unlink(chunk);
  ++cells_[chunk].num_pins;
}

void Residence::unpin(uint32_t chunk) {
  --cells_[chunk].num_pins;
  let_go(chunk);
}

void Residence::let_go(uint32_t chunk) {
  const Cell& cell = cells_[chunk];
  if (cell.num_pins == 0 && cell.io == Io::kNone && cell.slot != kNowhere && is_saved(cell)) {
    link(chunk, In::kEvictable);
  }
}

std::optional<uint32_t> Residence::evict() {
  const uint32_t chunk = evictable_.first;
  if (chunk == kNowhere) return std::nullopt;
  unlink(chunk);
  const uint32_t slot = cells_[chunk].slot;
  cells_[chunk].slot = kNowhere;
  if (log_ != nullptr) log_->add(event::ChunkMoved{pool_, chunk, kNowhere, 0});
  return slot;
}

uint32_t Residence::take_place() {
  if (!free_places_.empty()) {
    const uint32_t place = free_places_.back();
    free_places_.pop_back();
    return place;
  }
  if (has_new_place()) {
    // Reserves memory here, so that freeing a place needs no memory.
    if (free_places_.capacity() <= num_places_) free_places_.reserve(2 * size_t{num_places_} + 1);
    disk_->add(slots_->slot_bytes());
    if (short_places_.empty()) return num_places_++;
    const uint32_t place = short_places_.back();
    short_places_.pop_back();
    return place;
  }
  const uint32_t place = frozen_.front().place;
  frozen_.pop_front();
  return place;
}

Transfer Residence::begin_save() {
  const uint32_t chunk = complete_.first;
  const uint32_t place = take_place();
  unlink(chunk);
  Cell& cell = cells_[chunk];
  cell.place = place;
  cell.io = Io::kSave;
  return transfer_of(chunk);
}

void Residence::end_save(uint32_t chunk, const TransferResult& result) {
  Cell& cell = cells_[chunk];
  const bool is_good = result.error.empty();
  if (!is_good) {
    if (result.is_shortage) {
      short_places_.push_back(cell.place);
      disk_->give_back(slots_->slot_bytes());
    } else {
      disk_->give_up(slots_->slot_bytes());
    }
    cell.place = kNowhere;
  }
  if (cell.is_dead) {
    // Frees the place now, because no checkpoint refers to the place of an unsaved chunk.
    if (cell.place != kNowhere) free_places_.push_back(cell.place);
    cell.place = kNowhere;
    cell.io = Io::kNone;
    free(chunk);
    return;
  }
  cell.io = Io::kNone;
  if (!is_good) {
    link(chunk, In::kComplete, /*at_front=*/true);
    return;
  }
  --num_unsaved_;
  cell.checksum = result.checksum;
  const event::ChunkSaved saved{pool_, chunk, cell.place, cell.checksum};
  if (log_ != nullptr) log_->add(saved);
  if (cell.checkpoint < num_checkpoints_) saved_.push_back(saved);
  remove_complete(cell);
  let_go(chunk);
}

Transfer Residence::begin_load(uint32_t chunk, uint32_t slot) {
  cells_[chunk].slot = slot;
  cells_[chunk].io = Io::kLoad;
  return transfer_of(chunk);
}

void Residence::end_load(uint32_t chunk, const TransferResult& result) {
  Cell& cell = cells_[chunk];
  cell.io = Io::kNone;
  if (cell.is_dead) {
    free(chunk);
  } else if (result.error.empty()) {
    if (log_ != nullptr) log_->add(event::ChunkMoved{pool_, chunk, cell.slot, 0});
    let_go(chunk);
  } else {
    slots_->give_back(cell.slot);
    cell.slot = kNowhere;
  }
}

Transfer Residence::transfer_of(uint32_t chunk) const {
  const Cell& cell = cells_[chunk];
  return {pool_,
          chunk,
          cell.place,
          cell.checksum,
          slots_->at(cell.slot),
          slots_->slot_bytes(),
          disk_->room_bytes()};
}

void Residence::begin_restore(std::span<const SavedChunk> chunks, uint32_t num_places) {
  // Without checkpoints, unused places at the end of the file are dropped.
  num_places_ = disk_->has_checkpoints() ? num_places : 0;
  for (const SavedChunk& saved : chunks) {
    Cell& cell = cells_.emplace_back();
    cell.slot = saved.slot;
    cell.place = saved.place;
    cell.checksum = saved.checksum;
  }
}

void Residence::restore_slot(uint32_t chunk, uint32_t slot) {
  cells_.at(chunk).slot = slot;
  if (log_ != nullptr) log_->add(event::ChunkMoved{pool_, chunk, slot, 0});
}

std::vector<bool> Residence::end_restore(std::span<const uint32_t> live,
                                         std::span<const uint32_t> unfinished) {
  std::vector<bool> is_live(cells_.size());
  std::vector<bool> is_complete(cells_.size(), true);
  for (const uint32_t chunk : live) is_live.at(chunk) = true;
  for (const uint32_t chunk : unfinished) is_complete.at(chunk) = false;
  std::vector<bool> is_taken(slots_->num_slots());
  std::vector<bool> is_used(num_places_);
  for (uint32_t chunk = 0; chunk < cells_.size(); ++chunk) {
    Cell& cell = cells_[chunk];
    if (!is_live[chunk]) {
      cell = Cell();
      free_cells_.push_back(chunk);
      continue;
    }
    if (cell.slot != kNowhere) is_taken.at(cell.slot) = true;
    if (cell.place != kNowhere) {
      if (cell.place >= is_used.size()) is_used.resize(size_t{cell.place} + 1);
      is_used[cell.place] = true;
      let_go(chunk);
    } else {
      ++num_unsaved_;
      if (is_complete[chunk]) add_complete(chunk);
    }
  }
  num_places_ = static_cast<uint32_t>(is_used.size());
  disk_->add(num_places_ * slots_->slot_bytes());
  for (uint32_t place = num_places_; place-- > 0;) {
    if (is_used[place]) continue;
    // The last checkpoint may still refer to the place of an unneeded chunk.
    if (disk_->has_checkpoints()) {
      frozen_.push_back({place, 0});
    } else {
      free_places_.push_back(place);
    }
  }
  return is_taken;
}

void Residence::begin_checkpoint() {
  saved_.clear();
  saved_.reserve(num_complete_);  // now, because a later failure could not be reported
  ++num_checkpoints_;
  num_of_checkpoint_ = num_complete_;
}

std::vector<uint32_t> Residence::rest_of_checkpoint() const {
  std::vector<uint32_t> rest;
  for (uint32_t chunk = complete_.first; chunk != kNowhere; chunk = cells_[chunk].after) {
    if (cells_[chunk].checkpoint < num_checkpoints_) rest.push_back(chunk);
  }
  return rest;
}

void Residence::end_checkpoint() {
  while (!frozen_.empty() && frozen_.front().checkpoint < num_checkpoints_) {
    free_places_.push_back(frozen_.front().place);
    frozen_.pop_front();
  }
}

void Residence::link(uint32_t chunk, In in, bool at_front) {
  List& list = list_of(in);
  Cell& cell = cells_[chunk];
  cell.in = in;
  cell.before = at_front ? kNowhere : list.last;
  cell.after = at_front ? list.first : kNowhere;
  (cell.before == kNowhere ? list.first : cells_[cell.before].after) = chunk;
  (cell.after == kNowhere ? list.last : cells_[cell.after].before) = chunk;
  ++list.size;
}

void Residence::unlink(uint32_t chunk) {
  Cell& cell = cells_[chunk];
  if (cell.in == In::kNone) return;
  List& list = list_of(cell.in);
  (cell.before == kNowhere ? list.first : cells_[cell.before].after) = cell.after;
  (cell.after == kNowhere ? list.last : cells_[cell.after].before) = cell.before;
  cell.before = cell.after = kNowhere;
  cell.in = In::kNone;
  --list.size;
}

}  // namespace tengen::store::engine
