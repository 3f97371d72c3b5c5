#pragma once
// Samples batches, and gathers the steps of each into one buffer, in the background if that pays.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/clients/part_worker.h"
#include "store/session/arena.h"
#include "store/session/channel.h"
#include "store/steps/gather.h"

namespace tengen::store {

// A sampler's session, opened by a store.
struct SamplerSession {
  std::unique_ptr<Channel> channel;
  uint32_t num_ahead = 0;  // number of batches requested ahead; 0: next() requests each batch
};

// Samples that belong to the client until it acknowledges them or gives them back.
struct Delivery {
  uint64_t lease = 0;
  uint64_t table_size = 0;  // at the time of sampling
  std::vector<int64_t> keys;
  std::vector<double> probabilities;
  // The steps: column c lies at data + offsets[c], [num_samples, num_steps, ...] in C order.
  std::shared_ptr<std::byte> data;
};

// For one thread; the batches that it returns may outlive it. The destructor gives back all batches
// that have not been acknowledged.
//
// A batch that was requested ahead is also gathered ahead, in another thread, so that a learner
// that is busy with other work does not wait for the copy. But waking that thread costs both
// threads a few microseconds, and two threads that copy at the same time slow each other down. So
// this happens only for batches of at least kMinBytesAhead, and only if the caller was away for at
// least kMinAway in at least kMinAbsences consecutive calls. A caller that returns sooner has
// nothing better to do than to copy. A few absences prove nothing, because the system may have
// taken the CPU core from the caller. On a machine with only busy cores, the second thread might
// take that core next, and so cause the next absence.
class Sampler {
 public:
  // Every sample has `num_steps` steps, and every batch has `num_samples` samples.
  Sampler(SamplerSession session, engine::Schema schema, SlabMap slabs, uint32_t num_samples,
          uint32_t num_steps);

  const engine::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }
  const std::vector<uint64_t>& offsets() const { return layout_.offsets; }

  // Returns the next batch. Blocks; returns none if the deadline expires, and nothing is lost then.
  std::optional<Delivery> next(Deadline deadline);
  // Acknowledges that the samples were used. `priorities` is empty or has one entry per sample.
  void ack(uint64_t lease, std::span<const double> priorities);
  // Gives back samples that were not used.
  void give_back(uint64_t lease);
  // Returns a human-readable reason why the next batch must wait; empty if it need not.
  std::string waits() { return channel_->waits(); }
  // Whether the next batch has been gathered ahead completely.
  bool is_ready() const { return ahead_ && worker_.is_done(); }

  static constexpr uint64_t kMinBytesAhead = uint64_t{64} << 10;
  static constexpr std::chrono::microseconds kMinAway{300};
  static constexpr uint32_t kMinAbsences = 8;

 private:
  // A batch whose steps lie in slots, unless its data came with the reply.
  struct Drawn : Delivery {
    std::vector<engine::Piece> pieces;  // of all samples, in order
  };
  // Some samples of a batch, and their position in it.
  struct Part {
    std::span<const engine::Piece> pieces;
    uint32_t first_sample = 0;
  };

  bool ask(uint32_t wished, Deadline deadline);
  std::optional<Drawn> take_next(Deadline deadline);
  Drawn take_batch(std::span<const std::byte> reply);
  // The batch that next() will return, if it was requested ahead and has arrived; otherwise null.
  const Drawn* peek();
  void copy(const engine::Slabs& slabs, const Part& part, std::byte* data);
  // Makes the worker gather the next batch if it has arrived.
  void begin_next();
  std::vector<Part> split(std::span<const engine::Piece> pieces) const;

  const std::unique_ptr<Channel> channel_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;  // batches that were requested and that next() has not returned yet
  std::optional<Drawn> peeked_;
  const engine::Schema schema_;
  SlabMap slabs_;
  const uint32_t num_samples_;
  const uint32_t num_steps_;
  const BatchLayout layout_;
  Arena arena_;
  std::chrono::steady_clock::time_point returned_at_ = std::chrono::steady_clock::now();
  uint32_t num_absences_ = 0;  // consecutive absences of at least kMinAway
  // State of the next batch while it is gathered ahead.
  std::shared_ptr<std::byte> ahead_;
  engine::Slabs ahead_slabs_;
  std::vector<Part> ahead_parts_;
  PartWorker worker_;  // declared last, so destroyed first: it uses the members above
};

}  // namespace tengen::store
