#include "store/steps/pool.h"

#include <algorithm>

#include "base/error.h"
#include "store/steps/gather.h"

namespace tengen::store::engine {
namespace {

// Returns the size of a slot: a chunk, rounded up to Disk::kAlignment if there is a disk.
uint64_t slot_bytes_of(const Schema& schema, const Disk* disk) {
  const uint64_t unit = disk == nullptr ? 1 : Disk::kAlignment;
  return (schema.chunk_bytes() + unit - 1) / unit * unit;
}

}  // namespace

Pool::Pool(Schema schema, Memory* memory, uint32_t number, Log* log, Disk* disk,
           uint64_t* num_touched)
    : schema_(std::move(schema)),
      streams_(schema_.steps_per_chunk(), log, number, num_touched),
      slots_(memory, number, slot_bytes_of(schema_, disk), log) {
  if (disk == nullptr) return;
  if (!disk->has_room(slots_.slot_bytes())) {
    throw Error("disk_bytes (" + std::to_string(disk->budget_bytes()) + ") must hold chunks of " +
                std::to_string(slots_.slot_bytes()) + " bytes; raise it, or lower steps_per_chunk");
  }
  staging_ = std::make_unique<Staging>(number, &slots_, disk, log);
}

std::optional<uint32_t> Pool::take_chunk(uint64_t num_beside) {
  if (staging_ != nullptr) {
    reclaim();
    return staging_->begin_chunk(num_beside);
  }
  if (!slots_.has_free()) reclaim();
  return slots_.take();
}

void Pool::return_chunk(uint32_t chunk) {
  if (staging_ != nullptr) {
    staging_->drop(chunk);
  } else {
    slots_.give_back(chunk);
  }
}

void Pool::advance() {
  if (staging_ == nullptr) return;
  reclaim();
  staging_->advance();
}

void Pool::complete_last(uint32_t stream) {
  if (staging_ == nullptr) return;
  const std::optional<uint32_t> chunk = streams_.last(stream);
  if (chunk) staging_->residence().complete(*chunk);
}

void Pool::reclaim() {
  for (const uint32_t chunk : streams_.take_free_slots()) return_chunk(chunk);
}

void Pool::begin_restore(uint32_t num_slabs, std::span<const SavedStream> streams,
                         std::span<const SavedChunk> chunks, uint32_t num_places) {
  slots_.begin_restore(num_slabs);
  streams_.begin_restore(streams);
  if (staging_ != nullptr) staging_->residence().begin_restore(chunks, num_places);
}

void Pool::restore_steps(uint32_t chunk, std::span<const SavedSteps> steps) {
  const std::optional<uint32_t> slot = slots_.take();
  if (!slot) {
    throw Error(
        "memory_bytes must be enough for the unfilled chunks of the writers when "
        "the store ended, chunks of " +
        std::to_string(slots_.slot_bytes()) + " bytes; raise it");
  }
  for (const SavedSteps& some : steps) {
    unpack_steps(schema_, some, slots_.at(*slot));
  }
  staging_->residence().restore_slot(chunk, *slot);
}

void Pool::end_restore(std::span<const uint32_t> granted) {
  std::vector<uint32_t> live = streams_.end_restore();
  live.insert(live.end(), granted.begin(), granted.end());
  if (staging_ != nullptr) {
    std::vector<uint32_t> unfinished = streams_.open_ends();
    unfinished.insert(unfinished.end(), granted.begin(), granted.end());
    staging_->end_restore(live, unfinished);
    return;
  }
  std::vector<bool> is_taken(slots_.num_slots());
  for (const uint32_t slot : live) is_taken.at(slot) = true;
  slots_.end_restore(is_taken);
}

}  // namespace tengen::store::engine
