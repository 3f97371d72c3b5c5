#pragma once
// Samples batches. Gathers the steps of a batch into one buffer, in the background if that pays.

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

// A sampler's session that a store has opened.
struct SamplerSession {
  std::unique_ptr<Channel> channel;
  uint32_t num_ahead = 0;  // number of batches requested ahead; 0: next() requests each batch
};

// A batch of samples that the client holds until it acknowledges them or gives them back.
struct Delivery {
  uint64_t lease = 0;
  uint64_t table_size = 0;  // number of items in the table when the batch was sampled
  std::vector<int64_t> keys;
  std::vector<double> probabilities;
  // The steps: column c lies at data + offsets[c], [num_samples, num_steps, ...] in C order.
  std::shared_ptr<std::byte> data;
};

// Samples batches for one thread. Its batches may outlive the sampler. The destructor gives back
// all batches that have not been acknowledged.
//
// A batch that was requested ahead is also gathered ahead, in another thread, so that a learner
// that is busy with other work does not wait for the copy. But waking that thread costs both
// threads a few microseconds, and two threads that copy at the same time slow each other down. So
// this happens only for batches of at least kMinBytesAhead, and only if the caller stayed away for
// at least kMinAway before each of the last kMinAbsences calls. A caller that returns sooner can
// copy the steps itself. A few absences do not prove that the caller is busy, because the system
// may have preempted it. On a machine with only busy cores, the second thread might take that core
// next, and so cause the next absence.
class Sampler {
 public:
  // Every sample has `num_steps` steps, and every batch has `num_samples` samples.
  Sampler(SamplerSession session, engine::Schema schema, SlabMap slabs, uint32_t num_samples,
          uint32_t num_steps);

  const engine::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }
  const std::vector<uint64_t>& offsets() const { return layout_.offsets; }

  // Returns the next batch. Blocks. Returns none if the deadline expires; no batch is lost then.
  std::optional<Delivery> next(Deadline deadline);
  // Acknowledges that the samples of the batch `lease` were used. `priorities` is empty or has one
  // entry per sample.
  void ack(uint64_t lease, std::span<const double> priorities);
  // Gives back the unused samples of the batch `lease`.
  void give_back(uint64_t lease);
  // Returns a human-readable reason why the next batch must wait, or an empty string.
  std::string waits() { return channel_->waits(); }
  // Whether the next batch has been gathered ahead completely.
  bool is_ready() const { return ahead_ && worker_.is_done(); }

  static constexpr uint64_t kMinBytesAhead = uint64_t{64} << 10;
  static constexpr std::chrono::microseconds kMinAway{300};
  static constexpr uint32_t kMinAbsences = 8;

 private:
  // A sampled batch. Its steps lie in slots, unless they were sent with the reply.
  struct Drawn : Delivery {
    std::vector<engine::Piece> pieces;  // the pieces of all samples, in order
  };
  // A range of a batch's samples, which one thread copies.
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
