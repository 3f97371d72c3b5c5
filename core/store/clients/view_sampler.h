#pragma once
// Takes batches from a port and tells where their samples lie, without a copy.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "store/clients/sampler_port.h"
#include "store/clients/slab_map.h"

namespace tengen::store {

// Column c of sample i begins at data[c * num_samples + i], [num_steps, ...] in C order. The data
// stays unchanged until let_go(), even after the lease has ended, while the sampler and the store
// live.
struct Viewed {
  Delivery delivery;  // its pieces are not valid any more
  std::vector<std::byte*> data;
};

// For one thread, except let_go().
class ViewSampler {
 public:
  // Every sample has `num_steps` steps, every batch `num_samples` samples. Throws Error where no
  // sample can lie in one piece: of stacked columns, or of more steps than a chunk.
  ViewSampler(std::unique_ptr<SamplerPort> port, engine::Schema schema, SlabMap slabs,
              uint32_t num_samples, uint32_t num_steps);

  const engine::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }

  // The next batch. Blocks; none where the deadline passes. Throws Error where a sample lies over
  // several chunks; the batch is given back then.
  std::optional<Viewed> next(Deadline deadline);
  void ack(uint64_t lease, std::span<const double> priorities);
  void give_back(uint64_t lease);
  std::string waits();
  // Says that nobody reads the batch any more. The store is told now, or when a call of another
  // thread ends. Thread-safe; never fails, as a destructor calls it.
  void let_go(uint64_t lease) noexcept;

 private:
  // Calls the port exclusively, and then passes on batches that were let go of meanwhile.
  template <class F>
  auto use_port(F&& f);
  void pass_on() noexcept;
  std::optional<Viewed> next_of(Deadline deadline);

  const engine::Schema schema_;
  const uint32_t num_samples_;
  const uint32_t num_steps_;
  std::mutex port_mutex_;  // of the two members below; locked before mutex_
  const std::unique_ptr<SamplerPort> port_;
  SlabMap slabs_;
  std::mutex mutex_;
  std::vector<uint64_t> let_go_;
};

}  // namespace tengen::store
