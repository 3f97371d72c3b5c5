#pragma once
// Draws batches, and gathers the steps of each into one buffer, where it pays while the caller does
// something else.

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

// The session of a sampler that a store has opened.
struct SamplerSession {
  std::unique_ptr<Channel> channel;
  uint32_t num_ahead =
      0;  // so many batches are requested before they are needed; 0: each by next()
};

// Samples that are the client's until it acknowledges them or gives them back.
struct Delivery {
  uint64_t lease = 0;
  uint64_t table_size = 0;  // when they were drawn
  std::vector<int64_t> keys;
  std::vector<double> probabilities;
  // Their steps: column c lies at data + offsets[c], [num_samples, num_steps, ...] in C order.
  std::shared_ptr<std::byte> data;
};

// For one thread; the batches that it returns may outlive it. When destroyed, it gives back those
// that are not acknowledged.
//
// A batch that was drawn ahead is gathered ahead too, by another thread, so that a learner
// whose work is elsewhere does not wait for the copy. To wake that thread costs both threads some
// microseconds, and two threads that copy at once slow each other. So this is done only for batches
// of kMinBytesAhead and more, and where the caller stayed away for kMinAway at least kMinAbsences
// times in a row. A caller that comes back at once has nothing better to do than to copy. A few
// absences prove nothing, as the system may have taken the caller's core; the second thread may
// take it next, so that on a machine whose cores are all busy the absences would cause themselves.
class Sampler {
 public:
  // Every sample has `num_steps` steps, every batch `num_samples` samples.
  Sampler(SamplerSession session, engine::Schema schema, SlabMap slabs, uint32_t num_samples,
          uint32_t num_steps);

  const engine::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }
  const std::vector<uint64_t>& offsets() const { return layout_.offsets; }

  // The next batch. Blocks; none where the deadline passes, and nothing is lost then.
  std::optional<Delivery> next(Deadline deadline);
  // Says that the samples were used. `priorities` is empty, or has one for each sample.
  void ack(uint64_t lease, std::span<const double> priorities);
  // Says that the samples were not used.
  void give_back(uint64_t lease);
  // What the next batch waits for, for people; empty where it does not wait.
  std::string waits() { return channel_->waits(); }
  // Whether the next batch lies ready, gathered ahead.
  bool is_ready() const { return ahead_ && worker_.is_done(); }

  static constexpr uint64_t kMinBytesAhead = uint64_t{64} << 10;
  static constexpr std::chrono::microseconds kMinAway{300};
  static constexpr uint32_t kMinAbsences = 8;

 private:
  // A batch whose steps lie in slots, unless its data came with it.
  struct Drawn : Delivery {
    std::vector<engine::Piece> pieces;  // of all samples, one after another
  };
  // Some samples of a batch, and where it goes.
  struct Part {
    std::span<const engine::Piece> pieces;
    uint32_t first_sample = 0;
  };

  bool ask(uint32_t wished, Deadline deadline);
  std::optional<Drawn> take_next(Deadline deadline);
  Drawn take_batch(std::span<const std::byte> reply);
  // The batch that next() will return, where it was drawn ahead and has arrived; null otherwise.
  const Drawn* peek();
  void copy(const engine::Slabs& slabs, const Part& part, std::byte* data);
  // Has the worker gather the next batch, if it is there.
  void begin_next();
  std::vector<Part> split(std::span<const engine::Piece> pieces) const;

  const std::unique_ptr<Channel> channel_;
  const uint32_t num_ahead_;
  uint32_t num_asked_ = 0;  // batches that were requested and that next() has not returned
  std::optional<Drawn> peeked_;
  const engine::Schema schema_;
  SlabMap slabs_;
  const uint32_t num_samples_;
  const uint32_t num_steps_;
  const BatchLayout layout_;
  Arena arena_;
  std::chrono::steady_clock::time_point returned_at_ = std::chrono::steady_clock::now();
  uint32_t num_absences_ = 0;  // in a row, of kMinAway or more
  // Of the next batch, while it is gathered ahead.
  std::shared_ptr<std::byte> ahead_;
  engine::Slabs ahead_slabs_;
  std::vector<Part> ahead_parts_;
  PartWorker worker_;  // the last one, as it uses the others
};

}  // namespace tengen::store
