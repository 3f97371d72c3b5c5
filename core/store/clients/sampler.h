#pragma once
// Takes batches from a port and gathers their steps into one buffer each, where it pays while the
// caller does something else.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "store/clients/batch_layout.h"
#include "store/clients/part_worker.h"
#include "store/clients/sampler_port.h"
#include "store/clients/slab_map.h"
#include "store/session/arena.h"

namespace tengen::store {

// A batch's steps: column c lies at data + offsets[c], [num_samples, num_steps, ...] in C order.
struct Gathered {
  Delivery delivery;  // its pieces are not valid any more
  std::shared_ptr<std::byte> data;
};

// For one thread; the batches that it returns may outlive it.
//
// A batch that the port has drawn ahead is gathered ahead too, by another thread, so that a learner
// whose work is elsewhere does not wait for the copy. To wake that thread costs both threads some
// microseconds, and two threads that copy at once slow each other. So this is done only for batches
// of kMinBytesAhead and more, and where the caller stayed away for kMinAway at least kMinAbsences
// times in a row. A caller that comes back at once has nothing better to do than to copy. A few
// absences prove nothing, as the system may have taken the caller's core; the second thread may
// take it next, so that on a machine whose cores are all busy the absences would cause themselves.
class Sampler {
 public:
  // Every sample has `num_steps` steps, every batch `num_samples` samples.
  Sampler(std::unique_ptr<SamplerPort> port, engine::Schema schema, SlabMap slabs,
          uint32_t num_samples, uint32_t num_steps);

  const engine::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }
  const std::vector<uint64_t>& offsets() const { return layout_.offsets; }
  SamplerPort& port() { return *port_; }

  // The next batch. Blocks; none where the deadline passes, and nothing is lost then.
  std::optional<Gathered> next(Deadline deadline);
  // Whether the next batch lies ready, gathered ahead.
  bool is_ready() const { return ahead_ && worker_.is_done(); }

  static constexpr uint64_t kMinBytesAhead = uint64_t{64} << 10;
  static constexpr std::chrono::microseconds kMinAway{300};
  static constexpr uint32_t kMinAbsences = 8;

 private:
  // Some samples of a batch, and where it goes.
  struct Part {
    std::span<const engine::Piece> pieces;
    uint32_t first_sample = 0;
  };

  void copy(const engine::Slabs& slabs, const Part& part, std::byte* data);
  // Has the worker gather the next batch, if it is there.
  void begin_next();
  std::vector<Part> split(std::span<const engine::Piece> pieces) const;

  const std::unique_ptr<SamplerPort> port_;
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
