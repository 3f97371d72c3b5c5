#include "store/clients/sampler.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::store {
namespace {

// Size of a part of a batch: small enough that two threads share the batch well, large enough that
// to begin a part costs little.
constexpr uint64_t kPartBytes = uint64_t{128} << 10;

}  // namespace

Sampler::Sampler(std::unique_ptr<SamplerPort> port, engine::Schema schema, SlabMap slabs,
                 uint32_t num_samples, uint32_t num_steps)
    : port_(std::move(port)),
      schema_(std::move(schema)),
      slabs_(std::move(slabs)),
      num_samples_(num_samples),
      num_steps_(num_steps),
      layout_(schema_, num_samples, num_steps),
      arena_(layout_.num_bytes) {
  if (num_samples == 0) throw Error("batch (0 samples) must be of at least one; ask for more");
}

std::optional<Gathered> Sampler::next(Deadline deadline) {
  const bool was_away = std::chrono::steady_clock::now() - returned_at_ >= kMinAway;
  num_absences_ = was_away ? num_absences_ + 1 : 0;
  Gathered gathered;
  if (ahead_) worker_.finish();
  if (!port_->next(deadline, &gathered.delivery)) {
    returned_at_ = std::chrono::steady_clock::now();
    return std::nullopt;
  }
  if (gathered.delivery.data) {
    gathered.data = std::move(gathered.delivery.data);
  } else if (ahead_) {
    gathered.data = std::move(ahead_);
  } else {
    gathered.data = arena_.take();
    const std::span<const engine::Piece> pieces = gathered.delivery.pieces;
    copy(slabs_.of(pieces), {pieces, 0}, gathered.data.get());
  }
  if (num_absences_ >= kMinAbsences && layout_.num_bytes >= kMinBytesAhead) begin_next();
  returned_at_ = std::chrono::steady_clock::now();
  return gathered;
}

void Sampler::copy(const engine::Slabs& slabs, const Part& part, std::byte* data) {
  std::vector<std::byte*> out(layout_.offsets.size());
  for (size_t c = 0; c < out.size(); ++c) {
    const engine::Column& column = schema_.columns()[c];
    const uint64_t sample_bytes = column.num_bytes * num_steps_;
    out[c] = data + layout_.offsets[c] + part.first_sample * sample_bytes;
  }
  gather(schema_, slabs, part.pieces, out);
}

void Sampler::begin_next() {
  const Delivery* next = port_->peek();
  if (next == nullptr || next->data) return;
  try {
    ahead_slabs_ = slabs_.of(next->pieces);
    ahead_ = arena_.take();
  } catch (const Error&) {
    return;  // the error does not lose the batch, and next() will meet it too
  }
  ahead_parts_ = split(next->pieces);
  try {
    worker_.begin(static_cast<uint32_t>(ahead_parts_.size()),
                  [this](uint32_t part) { copy(ahead_slabs_, ahead_parts_[part], ahead_.get()); });
  } catch (const Error&) {
    ahead_.reset();  // no thread to be had: next() copies it
  }
}

std::vector<Sampler::Part> Sampler::split(std::span<const engine::Piece> pieces) const {
  const uint64_t sample_bytes = layout_.num_bytes / num_samples_;
  const uint64_t samples_per_part = std::max<uint64_t>(1, kPartBytes / sample_bytes);
  const uint64_t steps_per_part = samples_per_part * num_steps_;
  std::vector<Part> parts;
  size_t begin = 0;
  uint64_t num_steps = 0;
  for (size_t end = 1; end <= pieces.size(); ++end) {
    num_steps += pieces[end - 1].num_steps;
    if (num_steps < steps_per_part && end < pieces.size()) continue;
    parts.push_back({pieces.subspan(begin, end - begin),
                     static_cast<uint32_t>(parts.size() * samples_per_part)});
    begin = end;
    num_steps = 0;
  }
  return parts;
}

}  // namespace tengen::store
