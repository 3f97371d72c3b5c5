#include "store/clients/sampler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "store/session/encoding.h"
#include "transport/stream_socket.h"

namespace tengen::store {

using transport::part_of;

namespace {

// The size in bytes of a part of a batch: small enough for two threads to share the batch evenly,
// and large enough to keep the overhead per part small.
constexpr uint64_t kPartBytes = uint64_t{128} << 10;

}  // namespace

Sampler::Sampler(SamplerSession session, engine::Schema schema, SlabMap slabs, uint32_t num_samples,
                 uint32_t num_steps)
    : channel_(std::move(session.channel)),
      num_ahead_(session.num_ahead),
      schema_(std::move(schema)),
      slabs_(std::move(slabs)),
      num_samples_(num_samples),
      num_steps_(num_steps),
      layout_(schema_, num_samples, num_steps),
      arena_(layout_.num_bytes) {
  if (num_samples == 0) throw Error("batch (0 samples) must have at least one; request more");
}

std::optional<Delivery> Sampler::next(Deadline deadline) {
  const bool was_away = std::chrono::steady_clock::now() - returned_at_ >= kMinAway;
  num_absences_ = was_away ? num_absences_ + 1 : 0;
  if (ahead_) worker_.finish();
  std::optional<Drawn> drawn = take_next(deadline);
  if (drawn && !drawn->data) {
    if (ahead_) {
      drawn->data = std::move(ahead_);
    } else {
      drawn->data = arena_.take();
      copy(slabs_.of(drawn->pieces), {drawn->pieces, 0}, drawn->data.get());
    }
  }
  if (drawn && num_absences_ >= kMinAbsences && layout_.num_bytes >= kMinBytesAhead) begin_next();
  returned_at_ = std::chrono::steady_clock::now();
  return drawn;
}

std::optional<Sampler::Drawn> Sampler::take_next(Deadline deadline) {
  std::optional<Drawn> drawn = std::exchange(peeked_, std::nullopt);
  if (!drawn) {
    if (!ask(std::max(1u, num_ahead_), deadline)) return std::nullopt;
    const std::span<const std::byte> reply = channel_->wait_for_reply(deadline);
    if (reply.data() == nullptr) return std::nullopt;
    drawn = take_batch(reply);
  }
  --num_asked_;
  ask(num_ahead_, kAtOnce);
  return drawn;
}

const Sampler::Drawn* Sampler::peek() {
  if (peeked_) return &*peeked_;
  const std::span<const std::byte> reply = channel_->peek_reply();
  if (reply.data() == nullptr || read<Reply>(reply) != Reply::kBatch) return nullptr;
  return &peeked_.emplace(take_batch(reply));
}

void Sampler::ack(uint64_t lease, std::span<const double> priorities) {
  OfLease message{.lease = lease};
  message.num_bytes += static_cast<uint32_t>(priorities.size_bytes());
  iovec parts[] = {part_of(&message, sizeof message),
                   part_of(priorities.data(), priorities.size_bytes())};
  channel_->send(parts, Deadline::max(), Urgency::kLater);
  // Requests the next batch with the same wake-up of the store, so that next() need not request it.
  const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
  if (asks && channel_->send_one(SampleMessage{}, kAtOnce, Urgency::kLater)) ++num_asked_;
  channel_->ring();
}

void Sampler::give_back(uint64_t lease) {
  channel_->send_one(OfLease{.kind = Request::kGiveBack, .lease = lease}, Deadline::max());
}

// Requests batches until `wished` batches are in flight. Returns whether any batch is in flight.
bool Sampler::ask(uint32_t wished, Deadline deadline) {
  while (num_asked_ < wished && channel_->send_one(SampleMessage{}, deadline)) ++num_asked_;
  return num_asked_ > 0;
}

Sampler::Drawn Sampler::take_batch(std::span<const std::byte> reply) {
  const auto batch = read<Batch>(reply);
  Drawn drawn;
  drawn.lease = batch.lease;
  drawn.table_size = batch.table_size;
  std::span<const std::byte> rest = reply.subspan(sizeof batch);
  rest = take(rest, batch.num_samples, &drawn.keys);
  rest = take(rest, batch.num_samples, &drawn.probabilities);
  take_all(rest, &drawn.pieces);
  drawn.data = channel_->pop_reply();
  return drawn;
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
  const Drawn* next = peek();
  if (next == nullptr || next->data) return;
  try {
    ahead_slabs_ = slabs_.of(next->pieces);
    ahead_ = arena_.take();
  } catch (const Error&) {
    return;  // the batch is not lost, and next() will hit the same error
  }
  ahead_parts_ = split(next->pieces);
  try {
    worker_.begin(static_cast<uint32_t>(ahead_parts_.size()),
                  [this](uint32_t part) { copy(ahead_slabs_, ahead_parts_[part], ahead_.get()); });
  } catch (const Error&) {
    ahead_.reset();  // no thread available: next() copies the batch
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
