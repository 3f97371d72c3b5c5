#include "store/clients/view_sampler.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace tengen::store {

ViewSampler::ViewSampler(std::unique_ptr<SamplerPort> port, engine::Schema schema, SlabMap slabs,
                         uint32_t num_samples, uint32_t num_steps)
    : schema_(std::move(schema)),
      num_samples_(num_samples),
      num_steps_(num_steps),
      port_(std::move(port)),
      slabs_(std::move(slabs)) {
  if (schema_.num_context() > 0) {
    throw Error("copy (False) must be True, as the table has stacked columns; copy");
  }
  if (num_steps > schema_.steps_per_chunk()) {
    throw Error("copy (False) must be True, as a sample of " + std::to_string(num_steps) +
                " steps lies over several chunks of " + std::to_string(schema_.steps_per_chunk()) +
                "; copy, or raise steps_per_chunk");
  }
}

template <class F>
auto ViewSampler::use_port(F&& f) {
  struct Passing {
    ~Passing() { self->pass_on(); }
    ViewSampler* const self;
  } const passing{this};
  const std::scoped_lock lock(port_mutex_);
  return f();
}

std::optional<Viewed> ViewSampler::next(Deadline deadline) {
  return use_port([&] { return next_of(deadline); });
}

std::optional<Viewed> ViewSampler::next_of(Deadline deadline) {
  Viewed viewed;
  Delivery& delivery = viewed.delivery;
  if (!port_->next(deadline, &delivery)) return std::nullopt;
  if (delivery.pieces.size() != num_samples_) {
    port_->give_back(delivery.lease);
    throw Error("copy (False) must be True, as a sample lies over several chunks of " +
                std::to_string(schema_.steps_per_chunk()) +
                " steps; copy, or let items begin at multiples of it");
  }
  port_->keep(delivery.lease);
  const engine::Slabs slabs = slabs_.of(delivery.pieces);
  for (size_t c = 0; c < schema_.columns().size(); ++c) {
    for (const engine::Piece& piece : delivery.pieces) {
      viewed.data.push_back(slabs.at(piece.slot) + schema_.offset(c) +
                            piece.offset * schema_.columns()[c].num_bytes);
    }
  }
  return viewed;
}

void ViewSampler::ack(uint64_t lease, std::span<const double> priorities) {
  use_port([&] { port_->ack(lease, priorities); });
}

void ViewSampler::give_back(uint64_t lease) {
  use_port([&] { port_->give_back(lease); });
}

std::string ViewSampler::waits() {
  return use_port([&] { return port_->waits(); });
}

void ViewSampler::let_go(uint64_t lease) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    let_go_.push_back(lease);
  }
  pass_on();
}

// Where another call uses the port, that call passes the batches on when it is done.
void ViewSampler::pass_on() noexcept {
  const auto is_there_any = [this] {
    const std::scoped_lock lock(mutex_);
    return !let_go_.empty();
  };
  while (is_there_any()) {
    const std::unique_lock lock(port_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    std::vector<uint64_t> leases;
    {
      const std::scoped_lock own(mutex_);
      leases.swap(let_go_);
    }
    try {
      for (const uint64_t lease : leases) port_->let_go(lease);
    } catch (const Error&) {
      // The store is gone; the next call says so.
    }
  }
}

}  // namespace tengen::store
