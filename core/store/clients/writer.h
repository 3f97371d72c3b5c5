#pragma once
// Fills chunks with a writer's steps, and names runs of them as items.

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

// `count` items of one table: item i has the steps first + i * stride and on, the sequence number
// sequence + i, and priorities[i], or priorities[0] where there is only one.
struct InsertRun {
  uint32_t table = 0;
  uint64_t sequence = 0;
  uint64_t first = 0;
  uint32_t count = 1;
  uint32_t stride = 1;
  uint32_t num_steps = 1;
  std::span<const double> priorities;
};

// The session of a writer that a store has opened.
struct WriterSession {
  std::unique_ptr<Channel> channel;
  uint64_t next_sequence = 0;  // items with smaller sequence numbers were inserted before
  uint32_t num_ahead = 1;      // so many chunks, at least one, are requested before they are needed
};

// For one thread. Commands take effect in order, some time after the call; the Error of a command
// is thrown by the next call, and then the writer is of no use. Items may have the steps that were
// appended since the last insert, and `max_item_steps` before them.
class Writer {
 public:
  // Chunks lie in memory of the store, where `slabs` finds them.
  Writer(WriterSession session, engine::Schema schema, SlabMap slabs, uint32_t max_item_steps);
  // The store is on another host, and gets its steps by messages.
  Writer(WriterSession session, const engine::Schema& schema, uint32_t max_item_steps);

  const engine::Schema& schema() const { return schema_; }
  // Steps appended so far by this writer.
  uint64_t num_steps() const { return num_steps_; }
  // The sequence number of the next item; items with smaller numbers were inserted.
  uint64_t next_sequence() const { return next_sequence_; }

  // Copies steps, column c from columns[c] in C order. Blocks while there is no memory. Returns how
  // many steps were taken: fewer than `count` where the deadline passes.
  uint32_t append(std::span<const std::byte* const> columns, uint32_t count, Deadline deadline);
  // Inserts a run. Items whose sequence numbers were inserted before are left out. Blocks while the
  // store is behind. False where the deadline passes; then insert the same run again, which goes on
  // with the items that are not in yet.
  bool insert(const InsertRun& run, Deadline deadline);
  // Blocks until every command has taken effect; false where the deadline passes.
  bool flush(Deadline deadline) { return channel_->wait_for_all(deadline); }
  // What the store's side waits for, for people; empty where it does not wait.
  std::string waits() { return channel_->waits(); }

 private:
  // The chunk of the next step, or null where the deadline passes.
  std::byte* chunk_of_next(Deadline deadline);
  std::optional<uint32_t> begin_chunk(Deadline deadline);
  void take_slots();
  uint64_t add_steps(uint64_t named);
  bool send_run(const InsertRun& run, Deadline deadline);

  const std::unique_ptr<Channel> channel_;
  const engine::Schema schema_;
  // The chunk that is being filled, where the store is on another host: its steps are sent with the
  // insert that names them, or when the next chunk begins.
  std::shared_ptr<std::byte> chunk_;
  uint64_t num_sent_ = 0;  // steps
  Steps steps_;            // that are being sent
  SlabMap slabs_;
  const uint32_t max_item_steps_;
  uint64_t next_sequence_;
  uint64_t num_steps_ = 0;
  uint64_t num_released_ = 0;
  const uint32_t num_ahead_;
  std::deque<uint32_t> slots_;  // granted, and not begun
  bool has_asked_ = false;      // has asked for slots, and has no answer yet
  uint32_t slot_ = 0;           // of the chunk that is being filled
  std::vector<const std::byte*> from_;
  std::vector<iovec> parts_;  // of the message that is being sent
};

}  // namespace tengen::store
