#include "store/tables/streams.h"

#include <algorithm>
#include <utility>

#include "store/tables/slot_set.h"

namespace tengen::store::engine {

uint32_t Streams::open() {
  const uint32_t number = take_slot(&streams_, &free_streams_);
  streams_[number].is_open = true;
  return number;
}

void Streams::append(uint32_t stream, uint32_t slot) {
  if (free_slots_.capacity() <= num_chunks_) reserve_free_slots();
  streams_[stream].chunks.push_back({slot, 1});
  ++num_chunks_;
}

void Streams::release_before(uint32_t stream, uint64_t first) {
  Stream& s = streams_[stream];
  const uint64_t end = std::min(chunk_of(first), s.first_chunk + s.chunks.size());
  const uint64_t before = s.first_of_writer;
  while (s.first_of_writer < end) drop(s, s.first_of_writer++);
  if (log_ != nullptr && s.first_of_writer != before) {
    log_->add(event::Released{pool_, stream, s.first_of_writer});
  }
  drop_tail(stream);
}

void Streams::close(uint32_t stream) {
  Stream& s = streams_[stream];
  const uint64_t end = s.first_chunk + s.chunks.size();
  while (s.first_of_writer < end) drop(s, s.first_of_writer++);
  s.is_open = false;
  drop_tail(stream);
}

bool Streams::contains(const StepRange& steps) const {
  if (steps.stream >= streams_.size() || steps.num_steps == 0) return false;
  const Stream& s = streams_[steps.stream];
  const uint64_t first = first_chunk_of(steps);
  const uint64_t last = last_chunk_of(steps);
  // Rejects ranges that overflow, whose end lies before the beginning.
  if (first > last || first < s.first_chunk) return false;
  if (last - s.first_chunk >= s.chunks.size()) return false;
  for (uint64_t chunk = first; chunk <= last; ++chunk) {
    if (s.chunks[chunk - s.first_chunk].num_holders == 0) return false;
  }
  return true;
}

void Streams::hold(const StepRange& steps) {
  Stream& s = streams_[steps.stream];
  const uint64_t first = first_chunk_of(steps);
  const uint64_t last = last_chunk_of(steps);
  *num_touched_ += last - first + 1;
  for (uint64_t chunk = first; chunk <= last; ++chunk) {
    ++s.chunks[chunk - s.first_chunk].num_holders;
  }
}

void Streams::let_go(const StepRange& steps) {
  Stream& s = streams_[steps.stream];
  const uint64_t first = first_chunk_of(steps);
  const uint64_t last = last_chunk_of(steps);
  *num_touched_ += last - first + 1;
  for (uint64_t chunk = first; chunk <= last; ++chunk) drop(s, chunk);
  drop_tail(steps.stream);
}

void Streams::locate(const StepRange& steps, std::vector<Piece>* pieces) const {
  const Stream& s = streams_[steps.stream];
  uint64_t step = steps.first;
  uint32_t left = steps.num_steps;
  while (left > 0) {
    const uint32_t offset = static_cast<uint32_t>(step % steps_per_chunk_);
    const uint32_t count = std::min(left, steps_per_chunk_ - offset);
    pieces->push_back({s.chunks[chunk_of(step) - s.first_chunk].slot, offset, count});
    step += count;
    left -= count;
  }
}

void Streams::begin_restore(std::span<const SavedStream> saved) {
  for (const SavedStream& from : saved) {
    Stream& stream = streams_.emplace_back();
    stream.first_chunk = from.first_chunk;
    stream.first_of_writer = from.first_of_writer;
    stream.is_open = from.is_open;
    for (const uint32_t slot : from.slots) {
      const uint64_t chunk = from.first_chunk + stream.chunks.size();
      stream.chunks.push_back({slot, from.is_open && chunk >= from.first_of_writer ? 1u : 0u});
    }
  }
}

std::vector<uint32_t> Streams::end_restore() {
  std::vector<uint32_t> slots;
  for (uint32_t number = 0; number < streams_.size(); ++number) {
    for (const Chunk& chunk : streams_[number].chunks) {
      if (chunk.num_holders > 0) slots.push_back(chunk.slot);
    }
    drop_tail(number);
  }
  num_chunks_ = slots.size();
  reserve_free_slots();
  return slots;
}

const std::vector<uint32_t>& Streams::take_free_slots() {
  taken_slots_.clear();
  taken_slots_.swap(free_slots_);
  return taken_slots_;
}

void Streams::reserve_free_slots() {
  taken_slots_.reserve(2 * num_chunks_ + 1);
  free_slots_.reserve(2 * num_chunks_ + 1);
}

void Streams::drop(Stream& stream, uint64_t chunk) {
  Chunk& c = stream.chunks[chunk - stream.first_chunk];
  if (--c.num_holders > 0) return;
  free_slots_.push_back(c.slot);
  --num_chunks_;
}

// Drops dead chunks from the old end of a stream, because chunks die in almost any order. Removes
// the stream if no chunk is left and its writer is gone.
void Streams::drop_tail(uint32_t number) {
  Stream& s = streams_[number];
  const uint64_t before = s.first_chunk;
  while (!s.chunks.empty() && s.chunks.front().num_holders == 0) {
    s.chunks.pop_front();
    ++s.first_chunk;
  }
  if (log_ != nullptr && s.first_chunk != before) {
    log_->add(event::StreamTrimmed{pool_, number, s.first_chunk});
  }
  if (!s.is_open && s.chunks.empty()) {
    streams_[number] = Stream();
    free_streams_.push_back(number);
  }
}

}  // namespace tengen::store::engine
