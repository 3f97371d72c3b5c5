#pragma once
// What a client asks of a store, in one process or from another: the two narrow interfaces that
// writers and samplers are written against.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/engine/streams.h"

namespace tengen::store {

using Deadline = std::chrono::steady_clock::time_point;
// A deadline that has passed: what cannot be done at once is not done.
constexpr Deadline kAtOnce{};

// The store has ended or cannot be reached; this client's writers and samplers there are over.
class GoneError : public Error {
 public:
  explicit GoneError(const std::string& store)
      : Error("store (" + store + ") has ended, or has closed this client; connect again") {}
};

// The store has refused a request of this client, and so has ended the session; a new session is
// served.
class RefusedError : public Error {
 public:
  using Error::Error;
};

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
  virtual ~WriterPort() = default;

  // The next sequence number; items with smaller numbers were inserted before.
  virtual uint64_t next_sequence() const = 0;
  // The slot of the writer's next chunk, which the caller fills before it inserts steps of it.
  // Blocks while there is no memory for the chunk; none where the deadline passes.
  virtual std::optional<uint32_t> begin_chunk(Deadline deadline) = 0;
  // Blocks while the store is behind. False where the deadline passes; then insert the same run
  // again, which goes on with the items that are not in yet.
  virtual bool insert(const InsertRun& run, Deadline deadline) = 0;
  // Says that no item will name a step before `first`.
  virtual void release_before(uint64_t first) = 0;
  // Blocks until every command has taken effect; false where the deadline passes.
  virtual bool flush(Deadline deadline) = 0;
  // What the store's side waits for, for people; empty where it does not wait.
  virtual std::string waits() = 0;
};

// The store's side of one sampler of one table, for one thread. When destroyed, gives back batches
// that are not acknowledged.
class SamplerPort {
 public:
  virtual ~SamplerPort() = default;

  // The next batch. Blocks until there is one; false where the deadline passes, and nothing is
  // lost then.
  virtual bool next(Deadline deadline, Delivery* delivery) = 0;
  // The batch that next() will return, where it was drawn ahead and has arrived; null otherwise.
  // Does not block. Its pieces stay where they are until next().
  virtual const Delivery* peek() { return nullptr; }
  // Says that the samples were used. `priorities` is empty, or has one for each sample.
  virtual void ack(uint64_t lease, std::span<const double> priorities) = 0;
  // Says that the samples were not used.
  virtual void give_back(uint64_t lease) = 0;
  // Says that the caller reads the steps of a batch where they lie: they stay there until let_go().
  // Precondition: the batch is neither acknowledged nor given back. Throws Error where the steps
  // are not in memory of this host.
  virtual void keep(uint64_t lease) {
    throw Error("copy (False, lease " + std::to_string(lease) +
                ") must be True, as the store is on another host; copy");
  }
  // Ends keep().
  virtual void let_go(uint64_t) {}
  // What the next batch waits for, for people; empty where it does not wait.
  virtual std::string waits() = 0;
};

}  // namespace tengen::store
