#include "replay/streams.h"

#include <algorithm>
#include <utility>

namespace tengen::replay {

uint32_t Streams::open() {
  uint32_t number;
  if (free_streams_.empty()) {
    number = static_cast<uint32_t>(streams_.size());
    streams_.emplace_back();
  } else {
    number = free_streams_.back();
    free_streams_.pop_back();
    streams_[number] = Stream();
  }
  streams_[number].is_open = true;
  return number;
}

void Streams::append(uint32_t stream, uint32_t slot) {
  streams_[stream].chunks.push_back({slot, 1});
  ++num_chunks_;
}

void Streams::release_before(uint32_t stream, uint64_t first) {
  Stream& s = streams_[stream];
  const uint64_t end = std::min(chunk_of(first), s.first_chunk + s.chunks.size());
  while (s.first_of_writer < end) drop(s, s.first_of_writer++);
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
  const uint64_t first = chunk_of(steps.first);
  const uint64_t last = chunk_of(steps.first + steps.num_steps - 1);
  if (first < s.first_chunk || last >= s.first_chunk + s.chunks.size()) return false;
  for (uint64_t chunk = first; chunk <= last; ++chunk) {
    if (s.chunks[chunk - s.first_chunk].num_holders == 0) return false;
  }
  return true;
}

void Streams::hold(const StepRange& steps) {
  Stream& s = streams_[steps.stream];
  const uint64_t last = chunk_of(steps.first + steps.num_steps - 1);
  for (uint64_t chunk = chunk_of(steps.first); chunk <= last; ++chunk) {
    ++s.chunks[chunk - s.first_chunk].num_holders;
  }
}

void Streams::let_go(const StepRange& steps) {
  Stream& s = streams_[steps.stream];
  const uint64_t last = chunk_of(steps.first + steps.num_steps - 1);
  for (uint64_t chunk = chunk_of(steps.first); chunk <= last; ++chunk) drop(s, chunk);
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

std::vector<uint32_t> Streams::take_free_slots() { return std::exchange(free_slots_, {}); }

void Streams::drop(Stream& stream, uint64_t chunk) {
  Chunk& c = stream.chunks[chunk - stream.first_chunk];
  if (--c.num_holders > 0) return;
  free_slots_.push_back(c.slot);
  --num_chunks_;
}

// Chunks die in nearly any order; a stream forgets them from its oldest on, and itself when its
// writer is gone too.
void Streams::drop_tail(uint32_t number) {
  Stream& s = streams_[number];
  while (!s.chunks.empty() && s.chunks.front().num_holders == 0) {
    s.chunks.pop_front();
    ++s.first_chunk;
  }
  if (!s.is_open && s.chunks.empty()) {
    streams_[number] = Stream();
    free_streams_.push_back(number);
  }
}

}  // namespace tengen::replay
