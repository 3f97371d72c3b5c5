#include "store/clients/sampler_port.h"

#include <algorithm>
#include <utility>

#include "store/session/encoding.h"
#include "transport/stream_socket.h"

namespace tengen::store {

using transport::part_of;

bool SamplerPort::next(Deadline deadline, Delivery* delivery) {
  if (peeked_) {
    *delivery = std::move(*peeked_);
    peeked_.reset();
  } else {
    if (!ask(std::max(1u, num_ahead_), deadline)) return false;
    const std::span<const std::byte> reply = channel_->wait_for_reply(deadline);
    if (reply.data() == nullptr) return false;
    take_batch(reply, delivery);
  }
  --num_asked_;
  ask(num_ahead_, kAtOnce);
  return true;
}

const Delivery* SamplerPort::peek() {
  if (peeked_) return &*peeked_;
  const std::span<const std::byte> reply = channel_->peek_reply();
  if (reply.data() == nullptr || read<Reply>(reply) != Reply::kBatch) return nullptr;
  Delivery delivery;
  take_batch(reply, &delivery);
  return &peeked_.emplace(std::move(delivery));
}

void SamplerPort::ack(uint64_t lease, std::span<const double> priorities) {
  OfLease message{.lease = lease};
  message.num_bytes += static_cast<uint32_t>(priorities.size_bytes());
  iovec parts[] = {part_of(&message, sizeof message),
                   part_of(priorities.data(), priorities.size_bytes())};
  channel_->send(parts, Deadline::max(), Urgency::kLater);
  // The request for the next batch goes with the same wake-up, so that next() need not send it.
  const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
  if (asks && channel_->send_one(SampleMessage{}, kAtOnce, Urgency::kLater)) ++num_asked_;
  channel_->ring();
}

void SamplerPort::give_back(uint64_t lease) {
  channel_->send_one(OfLease{.kind = Request::kGiveBack, .lease = lease}, Deadline::max());
}

std::string SamplerPort::waits() { return channel_->waits(); }

// Requests batches until as many as wished are under way. Returns whether any is.
bool SamplerPort::ask(uint32_t wished, Deadline deadline) {
  while (num_asked_ < wished && channel_->send_one(SampleMessage{}, deadline)) ++num_asked_;
  return num_asked_ > 0;
}

void SamplerPort::take_batch(std::span<const std::byte> reply, Delivery* delivery) {
  const auto batch = read<Batch>(reply);
  delivery->lease = batch.lease;
  delivery->table_size = batch.table_size;
  std::span<const std::byte> rest = reply.subspan(sizeof batch);
  rest = take(rest, batch.num_samples, &delivery->keys);
  rest = take(rest, batch.num_samples, &delivery->probabilities);
  take_all(rest, &delivery->pieces);
  delivery->data = channel_->pop_reply();
}

}  // namespace tengen::store
