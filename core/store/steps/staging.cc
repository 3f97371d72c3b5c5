#include "store/steps/staging.h"

#include <algorithm>

namespace tengen::store::engine {
namespace {

// The maximum number of concurrent saves; with more, loads would wait for them.
constexpr uint64_t kMaxSaves = 8;

}  // namespace

uint64_t Staging::max_unsaved() const {
  const uint64_t all = slots_->max_slots();
  const uint64_t kept = std::max(all / 4, reserve_);
  return all > kept ? all - kept : 1;
}

std::optional<uint32_t> Staging::take_slot() {
  const std::optional<uint32_t> slot = slots_->take();
  return slot ? slot : residence_.evict();
}

void Staging::expect_no_more(uint32_t session) {
  if (expected_.erase(session) == 0) return;
  reserve_ = 0;
  for (const auto& [other, num_chunks] : expected_) reserve_ = std::max(reserve_, num_chunks);
}

std::optional<uint32_t> Staging::begin_chunk(uint64_t num_beside) {
  advance();
  const bool has_room = residence_.num_unsaved() < max_unsaved() + num_beside;
  if (!has_room || !residence_.has_number()) return std::nullopt;
  const std::optional<uint32_t> slot = take_slot();
  if (!slot) return slot;
  try {
    return residence_.begin(*slot);
  } catch (...) {
    slots_->give_back(*slot);
    throw;
  }
}

void Staging::fetch(uint64_t lease, std::span<const Piece> pieces) {
  Pins& pins = fetches_[lease];
  try {
    pins.chunks.reserve(pieces.size());
    for (const Piece& piece : pieces) pins.chunks.push_back(piece.slot);
    missing_.reserve(pieces.size());
    if (!start_fetch(lease, pins)) queued_ = lease;
    has_news_ = false;
  } catch (...) {
    fetches_.erase(lease);
    throw;
  }
}

bool Staging::start_fetch(uint64_t lease, Pins& pins) {
  missing_.clear();
  for (const uint32_t chunk : pins.chunks) {
    if (!residence_.is_resident(chunk)) missing_.push_back(chunk);
  }
  pins.reads = {pins.chunks.size() - missing_.size(), missing_.size()};
  std::sort(missing_.begin(), missing_.end());
  missing_.erase(std::unique(missing_.begin(), missing_.end()), missing_.end());
  const auto is_asked = [&](uint32_t chunk) { return residence_.is_loading(chunk); };
  const auto num_asked = std::count_if(missing_.begin(), missing_.end(), is_asked);
  const size_t num_loads = missing_.size() - static_cast<size_t>(num_asked);
  taken_.clear();
  taken_.reserve(num_loads);
  disk_->tier().reserve(num_loads);
  // Pins the resident chunks, so that they are not evicted to load the missing chunks.
  for (const uint32_t chunk : pins.chunks) residence_.pin(chunk);
  const auto undo = [&] {
    for (const uint32_t slot : taken_) slots_->give_back(slot);
    for (const uint32_t chunk : pins.chunks) residence_.unpin(chunk);
  };
  size_t num_lacking = 0;
  try {
    while (taken_.size() < num_loads) {
      // Evicts chunks for a fetch only if enough chunks can be evicted.
      const std::optional<uint32_t> slot = slots_->take();
      if (!slot) break;
      taken_.push_back(*slot);
    }
    num_lacking = num_loads - taken_.size();
    if (num_lacking > residence_.num_evictable()) {
      undo();
      return false;
    }
    for (const uint32_t chunk : missing_) awaited_[chunk].push_back(lease);
  } catch (...) {
    for (const uint32_t chunk : missing_) {
      const auto it = awaited_.find(chunk);
      if (it == awaited_.end()) break;
      std::erase(it->second, lease);
      if (it->second.empty()) awaited_.erase(it);
    }
    undo();
    throw;
  }
  for (size_t i = 0; i < num_lacking; ++i) taken_.push_back(*residence_.evict());
  pins.has_slots = true;
  pins.num_missing = missing_.size();
  for (const uint32_t chunk : missing_) {
    if (is_asked(chunk)) continue;
    disk_->tier().load(residence_.begin_load(chunk, taken_.back()));
    taken_.pop_back();
  }
  return true;
}

Staging::Fetch Staging::state_of(uint64_t lease) const {
  const Pins& pins = fetches_.at(lease);
  if (!pins.damaged.empty()) return Fetch::kDamaged;
  return pins.has_slots && pins.num_missing == 0 ? Fetch::kReady : Fetch::kUnderWay;
}

void Staging::end_fetch(uint64_t lease) {
  const auto it = fetches_.find(lease);
  if (queued_ == lease) queued_.reset();
  if (it->second.has_slots) {
    for (const uint32_t chunk : it->second.chunks) residence_.unpin(chunk);
  }
  fetches_.erase(it);
  has_news_ = true;
}

void Staging::advance() {
  start_saves();
  // Skips the attempt if nothing has changed, because an attempt takes time proportional to the
  // fetch's size, and most calls come from other sessions. The file system may have space again
  // without notice.
  if (!queued_ || (!has_news_ && slots_->trouble().empty())) return;
  const uint64_t lease = *queued_;
  if (start_fetch(lease, fetches_.at(lease))) queued_.reset();
  has_news_ = false;
}

bool Staging::wants_saves() const {
  return 2 * slots_->num_taken() > slots_->max_slots() ||
         residence_.num_unsaved() >= max_unsaved() || !has_checkpoint_saved();
}

void Staging::start_saves() {
  const bool is_wanted = wants_saves();
  while (is_wanted && num_saves_ < kMaxSaves && residence_.has_complete() &&
         residence_.has_place()) {
    disk_->tier().reserve(1);
    disk_->tier().save(residence_.begin_save());
    ++num_saves_;
  }
}

bool Staging::loaded(uint32_t chunk, const TransferResult& result) {
  residence_.end_load(chunk, result);
  has_news_ = true;
  const auto awaited = awaited_.extract(chunk);
  bool may_go_on = queued_.has_value();
  for (const uint64_t lease : awaited.mapped()) {
    const auto it = fetches_.find(lease);
    if (it == fetches_.end()) {  // the fetch's session has ended, so others may use the slot
      may_go_on = true;
      continue;
    }
    may_go_on |= --it->second.num_missing == 0 || !result.error.empty();
    if (!result.error.empty()) it->second.damaged.push_back(chunk);
  }
  return may_go_on;
}

void Staging::saved(uint32_t chunk, const TransferResult& result) {
  --num_saves_;
  residence_.end_save(chunk, result);
  has_news_ = true;
}

void Staging::resume_fetch(uint64_t lease, std::span<const Piece> pieces) {
  Pins& pins = fetches_[lease];
  pins.has_slots = true;
  for (const Piece& piece : pieces) {
    pins.chunks.push_back(piece.slot);
    residence_.pin(piece.slot);
  }
}

void Staging::end_restore(std::span<const uint32_t> live, std::span<const uint32_t> unfinished) {
  slots_->end_restore(residence_.end_restore(live, unfinished));
}

}  // namespace tengen::store::engine
