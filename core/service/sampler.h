#pragma once
// Takes batches from a port and gathers their steps into one buffer each.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "service/arena.h"
#include "service/ports.h"
#include "service/slab_map.h"

namespace tengen::service {

// A batch's steps: column c lies at data + offsets[c], [num_samples, num_steps, ...] in C order.
struct Gathered {
  Delivery delivery;  // pieces are of no more use
  std::shared_ptr<std::byte> data;
};

// For one thread; what it returns may outlive it.
class Sampler {
 public:
  // Every sample has `num_steps` steps, every batch `num_samples` samples.
  Sampler(std::unique_ptr<SamplerPort> port, replay::Schema schema, SlabMap slabs,
          uint32_t num_samples, uint32_t num_steps);

  const replay::Schema& schema() const { return schema_; }
  uint32_t num_samples() const { return num_samples_; }
  uint32_t num_steps() const { return num_steps_; }
  const std::vector<uint64_t>& offsets() const { return offsets_; }
  SamplerPort& port() { return *port_; }

  // The next batch. Blocks; none where the deadline passes.
  std::optional<Gathered> next(Deadline deadline);

 private:
  const std::unique_ptr<SamplerPort> port_;
  const replay::Schema schema_;
  SlabMap slabs_;
  const uint32_t num_samples_;
  const uint32_t num_steps_;
  std::vector<uint64_t> offsets_;
  std::optional<Arena> arena_;
  std::vector<std::byte*> out_;
};

}  // namespace tengen::service
