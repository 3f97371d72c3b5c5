#pragma once
// Fills chunks with a writer's steps, and inserts ranges of these steps as items.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/session/arena.h"
#include "store/session/channel.h"
#include "store/session/messages.h"
#include "store/steps/gather.h"

namespace tengen::store {

// `count` items of one table. Item i has `num_steps` steps from first + i * stride, the sequence
// number sequence + i, and the priority priorities[i], or priorities[0] if there is only one.
struct InsertRun {
  uint32_t table = 0;
  uint64_t sequence = 0;
  uint64_t first = 0;
  uint32_t count = 1;
  uint32_t stride = 1;
  uint32_t num_steps = 1;
  std::span<const double> priorities;
};

// A writer's session that a store has opened.
struct WriterSession {
  std::unique_ptr<Channel> channel;
  uint64_t next_sequence = 0;  // items with smaller sequence numbers have been inserted before
  uint32_t num_ahead = 1;      // number of chunks requested ahead, at least 1
};

// Appends steps and inserts items, for one thread. Commands take effect in order, some time after
// the call. If a command fails, the next call throws its Error, and the writer is then unusable.
// Items may contain steps that were appended since the last insert, and up to `max_item_steps`
// steps before them.
class Writer {
 public:
  // Chunks lie in memory of the store, which `slabs` locates; or, if it is none, the store is on
  // another host and receives the steps in messages.
  Writer(WriterSession session, engine::Schema schema, SlabMap slabs, uint32_t max_item_steps);

  const engine::Schema& schema() const { return schema_; }
  // The number of steps that this writer has appended.
  uint64_t num_steps() const { return num_steps_; }
  // The sequence number of the next item. Items with smaller numbers have been inserted.
  uint64_t next_sequence() const { return next_sequence_; }

  // Copies steps; columns[c] holds the data of column c in C order. Blocks while there is no
  // memory. Returns the number of copied steps, which is less than `count` if the deadline expires.
  uint32_t append(std::span<const std::byte* const> columns, uint32_t count, Deadline deadline);
  // Inserts the items of a run, and skips items whose sequence numbers were inserted before. Blocks
  // while the store is busy. Returns false if the deadline expires; call it again with the same run
  // to insert the remaining items.
  bool insert(const InsertRun& run, Deadline deadline);
  // Blocks until every command has taken effect. Returns false if the deadline expires.
  bool flush(Deadline deadline) { return channel_->wait_for_all(deadline); }
  // Returns a human-readable reason why the store makes this writer wait, or an empty string.
  std::string waits() { return channel_->waits(); }

 private:
  // Returns the chunk that receives the next step, or null if the deadline expires.
  std::byte* chunk_of_next(Deadline deadline);
  std::optional<uint32_t> begin_chunk(Deadline deadline);
  void take_slots();
  uint64_t add_steps(uint64_t named);
  bool send_run(const InsertRun& run, Deadline deadline);

  const std::unique_ptr<Channel> channel_;
  const engine::Schema schema_;
  // The chunk that is being filled, if the store is on another host. Its steps are sent with the
  // insert that uses them, or when the next chunk begins.
  std::shared_ptr<std::byte> chunk_;
  uint64_t num_sent_ = 0;  // number of steps sent to the store
  Steps steps_;            // header of the Steps message that is being sent
  SlabMap slabs_;
  const uint32_t max_item_steps_;
  uint64_t next_sequence_;
  uint64_t num_steps_ = 0;
  uint64_t num_released_ = 0;
  const uint32_t num_ahead_;
  std::deque<uint32_t> slots_;  // granted slots that are not in use yet
  bool has_asked_ = false;      // whether a request for slots is unanswered
  uint32_t slot_ = 0;           // slot of the chunk that is being filled
  std::vector<const std::byte*> from_;
  std::vector<iovec> parts_;  // parts of the message that is being sent
};

}  // namespace tengen::store
