#include "service/sampler.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::service {

Sampler::Sampler(std::unique_ptr<SamplerPort> port, replay::Schema schema, SlabMap slabs,
                 uint32_t num_samples, uint32_t num_steps)
    : port_(std::move(port)),
      schema_(std::move(schema)),
      slabs_(std::move(slabs)),
      num_samples_(num_samples),
      num_steps_(num_steps) {
  if (num_samples == 0) throw Error("batch (0 samples) must be of at least one; ask for more");
  uint64_t num_bytes = 0;
  for (const replay::Column& column : schema_.columns()) {
    offsets_.push_back(num_bytes);
    const uint64_t column_bytes = column.num_bytes * num_steps * num_samples;
    num_bytes += (column_bytes + 63) / 64 * 64;
  }
  arena_.emplace(num_bytes);
  out_.resize(offsets_.size());
}

std::optional<Gathered> Sampler::next(Deadline deadline) {
  Gathered gathered;
  if (!port_->next(deadline, &gathered.delivery)) return std::nullopt;
  gathered.data = arena_->take();
  uint32_t last_slot = 0;
  for (const replay::Piece& piece : gathered.delivery.pieces) {
    last_slot = std::max(last_slot, piece.slot);
  }
  for (size_t c = 0; c < out_.size(); ++c) out_[c] = gathered.data.get() + offsets_[c];
  gather(schema_, slabs_.up_to(last_slot), gathered.delivery.pieces, out_);
  return gathered;
}

}  // namespace tengen::service
