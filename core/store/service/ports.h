#pragma once
// What a client asks of a store, whatever carries it there: the commands of one writer, and of one
// sampler.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/engine/streams.h"
#include "store/service/channel.h"
#include "store/service/messages.h"
#include "store/service/sent_steps.h"

namespace tengen::store {

// `count` items of one table: item i has the steps first + i * stride and on, the sequence number
// sequence + i, and priorities[i], or priorities[0] where there is only one.
struct InsertRun {
  uint32_t table = 0;
  uint32_t version = 0;  // of the model that made the steps
  uint64_t sequence = 0;
  uint64_t first = 0;
  uint32_t count = 1;
  uint32_t stride = 1;
  uint32_t num_steps = 1;
  std::span<const double> priorities;
};

// Samples that are the client's until it acknowledges them or gives them back.
struct Delivery {
  uint64_t lease = 0;
  uint64_t table_size = 0;  // when they were drawn
  std::vector<int64_t> keys;
  std::vector<double> probabilities;
  std::vector<engine::Piece> pieces;  // of all samples and their context, one after another
  std::shared_ptr<std::byte> data;    // the gathered batch, as BatchLayout says, instead of pieces
};

// The store's side of one writer, for one thread. Commands take effect in order, some time after
// the call; the Error of a command is thrown by the next call, and then the port is of no use.
// Closes the writer when destroyed.
class WriterPort {
 public:
  // Up to `num_ahead` chunks, at least one, are requested before they are needed. Items with
  // sequence numbers below `next_sequence` were inserted before.
  WriterPort(std::unique_ptr<Channel> channel, uint64_t next_sequence, uint32_t num_ahead);
  // Of a store on another host, which gets its steps by messages.
  WriterPort(std::unique_ptr<Channel> channel, uint64_t next_sequence, const SentSteps& steps);

  uint64_t next_sequence() const { return next_sequence_; }
  // The slot of the writer's next chunk, which the caller fills before it inserts steps of it.
  // Blocks while there is no memory for the chunk; none where the deadline passes.
  std::optional<uint32_t> begin_chunk(Deadline deadline);
  // Blocks while the store is behind. False where the deadline passes; then insert the same run
  // again, which goes on with the items that are not in yet.
  bool insert(const InsertRun& run, Deadline deadline);
  // Says that no item will name a step before `first`.
  void release_before(uint64_t first);
  // Blocks until every command has taken effect; false where the deadline passes.
  bool flush(Deadline deadline) { return channel_->wait_for_all(deadline); }
  // What the store's side waits for, for people; empty where it does not wait.
  std::string waits() { return channel_->waits(); }

 private:
  bool send_chunk(Deadline deadline);
  void take_slots();

  const std::unique_ptr<Channel> channel_;
  const uint64_t next_sequence_;
  const uint32_t num_ahead_;
  std::optional<SentSteps> steps_;  // none: the store sees the memory that the caller fills
  std::deque<uint32_t> slots_;      // granted, and not begun
  bool has_asked_ = false;          // has asked for slots, and has no answer yet
  std::vector<iovec> parts_;        // of the message that is being sent
};

// The store's side of one sampler of one table, for one thread. When destroyed, gives back batches
// that are not acknowledged.
class SamplerPort {
 public:
  // `num_ahead` batches are requested before they are needed; 0: each by next().
  SamplerPort(std::unique_ptr<Channel> channel, uint32_t num_ahead)
      : channel_(std::move(channel)), num_ahead_(num_ahead) {}

  // The next batch. Blocks until there is one; false where the deadline passes, and nothing is
  // lost then.
  bool next(Deadline deadline, Delivery* delivery);
  // The batch that next() will return, where it was drawn ahead and has arrived; null otherwise.
  // Does not block. Its pieces stay where they are until next().
  const Delivery* peek();
  // Says that the samples were used. `priorities` is empty, or has one for each sample.
  void ack(uint64_t lease, std::span<const double> priorities);
  // Says that the samples were not used.
  void give_back(uint64_t lease);
  // Says that the caller reads the steps of a batch where they lie: they stay there until let_go().
  // Precondition: the steps are in memory of this host, and the batch is neither acknowledged nor
  // given back.
  void keep(uint64_t lease);
  // Ends keep().
  void let_go(uint64_t lease);
  // What the next batch waits for, for people; empty where it does not wait.
  std::string waits() { return channel_->waits(); }

 private:
  bool ask(uint32_t wished, Deadline deadline);
  void take_batch(std::span<const std::byte> reply, Delivery* delivery);

  const std::unique_ptr<Channel> channel_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;  // batches that were requested and that next() has not returned
  std::optional<Delivery> peeked_;
};

}  // namespace tengen::store
