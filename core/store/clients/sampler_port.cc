#include "store/clients/sampler_port.h"

#include <algorithm>
#include <utility>

#include "store/session/encoding.h"
#include "transport/stream_socket.h"

namespace tengen::store {

using transport::part_of;

template <class F>
auto SamplerPort::use(F&& f) {
  struct Passing {
    ~Passing() {
      if (self->has_let_go_) self->pass_on();
    }
    SamplerPort* const self;
  } const passing{this};
  const std::scoped_lock lock(mutex_);
  return f();
}

bool SamplerPort::next(Deadline deadline, Delivery* delivery) {
  return use([&] { return take_next(deadline, delivery); });
}

bool SamplerPort::take_next(Deadline deadline, Delivery* delivery) {
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
  return use([&]() -> const Delivery* {
    if (peeked_) return &*peeked_;
    const std::span<const std::byte> reply = channel_->peek_reply();
    if (reply.data() == nullptr || read<Reply>(reply) != Reply::kBatch) return nullptr;
    Delivery delivery;
    take_batch(reply, &delivery);
    return &peeked_.emplace(std::move(delivery));
  });
}

void SamplerPort::ack(uint64_t lease, std::span<const double> priorities) {
  OfLease message{.lease = lease};
  message.num_bytes += static_cast<uint32_t>(priorities.size_bytes());
  iovec parts[] = {part_of(&message, sizeof message),
                   part_of(priorities.data(), priorities.size_bytes())};
  use([&] {
    channel_->send(parts, Deadline::max(), Urgency::kLater);
    // The request for the next batch goes with the same wake-up, so that next() need not send it.
    const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
    if (asks && channel_->send_one(SampleMessage{}, kAtOnce, Urgency::kLater)) ++num_asked_;
    channel_->ring();
  });
}

void SamplerPort::give_back(uint64_t lease) {
  use([&] { send(Request::kGiveBack, lease); });
}

void SamplerPort::keep(uint64_t lease) {
  use([&] { send(Request::kKeep, lease); });
}

void SamplerPort::let_go(uint64_t lease) noexcept {
  {
    const std::scoped_lock lock(let_go_mutex_);
    let_go_.push_back(lease);
    has_let_go_ = true;
  }
  pass_on();
}

// Where another call uses the channel, that call passes the batches on when it is done.
void SamplerPort::pass_on() noexcept {
  while (has_let_go_) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    std::vector<uint64_t> leases;
    {
      const std::scoped_lock own(let_go_mutex_);
      leases.swap(let_go_);
      has_let_go_ = false;
    }
    try {
      for (const uint64_t lease : leases) send(Request::kLetGo, lease);
    } catch (const std::exception&) {
      // The store is gone, or there is no memory; the next call says so.
    }
  }
}

std::string SamplerPort::waits() {
  return use([&] { return channel_->waits(); });
}

void SamplerPort::send(Request kind, uint64_t lease) {
  channel_->send_one(OfLease{.kind = kind, .lease = lease}, Deadline::max());
}

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
