#pragma once
// The steps of a writer whose store is on another host.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/engine/schema.h"
#include "store/service/arena.h"
#include "store/service/messages.h"
#include "store/service/slab_map.h"
#include "transport/stream_socket.h"

namespace tengen::store {

// Steps are collected in one chunk of this process, and sent with the insert that names them, or
// when the next chunk begins. For one thread; copies share the chunk.
class SentSteps {
 public:
  explicit SentSteps(const engine::Schema& schema)
      : schema_(schema), chunk_(Arena(schema.chunk_bytes()).take()) {}

  // Where the chunk that is being filled lies.
  SlabMap slabs() const {
    return {1, schema_.chunk_bytes(), [chunk = chunk_](uint32_t) { return chunk.get(); }};
  }
  void begin_chunk() { ++num_chunks_; }
  // The number of the chunk's last step, and 1.
  uint64_t chunk_end() const { return num_chunks_ * schema_.steps_per_chunk(); }
  // How far steps must be sent so that those before `named` are.
  uint64_t end_for(uint64_t named) const {
    return std::max(num_sent_, std::min(named, chunk_end()));
  }
  // Adds the message of the chunk's steps before `end` that were not sent yet. Returns whether
  // there are any. The parts are valid until the next call.
  bool add_until(uint64_t end, std::vector<iovec>* parts) {
    if (end == num_sent_) return false;
    const uint64_t offset = num_sent_ - (num_chunks_ - 1) * schema_.steps_per_chunk();
    const uint64_t num_steps = end - num_sent_;
    message_.num_steps = static_cast<uint32_t>(num_steps);
    parts->push_back(transport::part_of(&message_, sizeof message_));
    for (size_t c = 0; c < schema_.columns().size(); ++c) {
      const uint64_t bytes = schema_.columns()[c].num_bytes;
      parts->push_back(
          transport::part_of(chunk_.get() + schema_.offset(c) + offset * bytes, num_steps * bytes));
    }
    if (schema_.num_context() > 0) {
      parts->push_back(
          transport::part_of(chunk_.get() + schema_.ages_offset() + offset, num_steps));
    }
    return true;
  }
  void note_sent(uint64_t end) { num_sent_ = end; }

 private:
  engine::Schema schema_;
  std::shared_ptr<std::byte> chunk_;
  Steps message_;
  uint64_t num_chunks_ = 0;  // begun
  uint64_t num_sent_ = 0;    // steps
};

}  // namespace tengen::store
