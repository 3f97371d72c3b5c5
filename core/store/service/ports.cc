#include "store/service/ports.h"

#include <algorithm>
#include <utility>

#include "store/service/encoding.h"
#include "transport/stream_socket.h"

namespace tengen::store {
namespace {

using transport::part_of;

// Sends a message of fixed size.
template <class Message>
bool send(Channel& channel, const Message& message, Deadline deadline,
          Urgency urgency = Urgency::kNow) {
  iovec part = part_of(&message, sizeof message);
  return channel.send({&part, 1}, deadline, urgency);
}

}  // namespace

WriterPort::WriterPort(std::unique_ptr<Channel> channel, uint64_t next_sequence, uint32_t num_ahead)
    : channel_(std::move(channel)),
      next_sequence_(next_sequence),
      num_ahead_(std::max(1u, num_ahead)) {}

WriterPort::WriterPort(std::unique_ptr<Channel> channel, uint64_t next_sequence,
                       const SentSteps& steps)
    : channel_(std::move(channel)), next_sequence_(next_sequence), num_ahead_(1), steps_(steps) {}

std::optional<uint32_t> WriterPort::begin_chunk(Deadline deadline) {
  if (steps_) {
    if (!send_chunk(deadline)) return std::nullopt;
    steps_->begin_chunk();
    return 0;
  }
  take_slots();
  if (!has_asked_ && slots_.size() <= num_ahead_ / 2) {
    const uint32_t count = num_ahead_ - static_cast<uint32_t>(slots_.size());
    if (!send(*channel_, TakeSlots{Request::kTakeSlots, count}, deadline)) return std::nullopt;
    has_asked_ = true;
  }
  while (slots_.empty()) {
    if (channel_->wait_for_reply(deadline).data() == nullptr) return std::nullopt;
    take_slots();
  }
  const uint32_t slot = slots_.front();
  if (!send(*channel_, Append{Request::kAppend, slot}, deadline, Urgency::kSoon)) {
    return std::nullopt;
  }
  slots_.pop_front();
  return slot;
}

// Sends the steps of the last chunk that no item has named.
bool WriterPort::send_chunk(Deadline deadline) {
  parts_.clear();
  const uint64_t end = steps_->chunk_end();
  if (!steps_->add_until(end, &parts_)) return true;
  if (!channel_->send(parts_, deadline, Urgency::kSoon)) return false;
  steps_->note_sent(end);
  return true;
}

bool WriterPort::insert(const InsertRun& run, Deadline deadline) {
  const bool is_shared = run.priorities.size() == 1;
  const uint32_t room = channel_->max_message() - static_cast<uint32_t>(sizeof(InsertMessage));
  const uint32_t max_items = std::min<uint32_t>(kMaxItems, room / sizeof(double));
  for (uint32_t done = 0; done < run.count;) {
    const uint32_t count = std::min(run.count - done, max_items);
    const auto priorities = is_shared ? run.priorities : run.priorities.subspan(done, count);
    const InsertMessage message{Request::kInsert,
                                static_cast<uint32_t>(priorities.size()),
                                run.table,
                                run.version,
                                run.sequence + done,
                                run.first + uint64_t{done} * run.stride,
                                count,
                                run.stride,
                                run.num_steps,
                                0};
    parts_.clear();
    uint64_t end = 0;
    if (steps_) {
      end = steps_->end_for(message.first + uint64_t{count - 1} * run.stride + run.num_steps);
      steps_->add_until(end, &parts_);
    }
    parts_.push_back(part_of(&message, sizeof message));
    parts_.push_back(part_of(priorities.data(), priorities.size_bytes()));
    if (!channel_->send(parts_, deadline, Urgency::kSoon)) return false;
    if (steps_) steps_->note_sent(end);
    done += count;
  }
  return true;
}

void WriterPort::release_before(uint64_t first) {
  // Where the store is behind, the release is sent the next time.
  send(*channel_, Release{Request::kRelease, 0, first}, kAtOnce, Urgency::kSoon);
}

void WriterPort::take_slots() {
  while (channel_->peek_reply().data() != nullptr) {
    const std::span<const std::byte> reply = channel_->wait_for_reply(Deadline::max());
    const auto slots = read<Slots>(reply);
    for (uint32_t i = 0; i < slots.count; ++i) {
      slots_.push_back(read<uint32_t>(reply.subspan(sizeof slots + i * sizeof(uint32_t))));
    }
    has_asked_ = false;
    channel_->pop_reply();
  }
}

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
  const Ack message{Request::kAck, static_cast<uint32_t>(priorities.size()), lease};
  iovec parts[] = {part_of(&message, sizeof message),
                   part_of(priorities.data(), priorities.size_bytes())};
  channel_->send(parts, Deadline::max(), Urgency::kLater);
  // The request for the next batch goes with the same wake-up, so that next() need not send it.
  const bool asks = num_ahead_ > 0 && num_asked_ <= num_ahead_;
  if (asks && send(*channel_, SampleMessage{}, kAtOnce, Urgency::kLater)) ++num_asked_;
  channel_->ring();
}

void SamplerPort::give_back(uint64_t lease) {
  send(*channel_, GiveBack{Request::kGiveBack, 0, lease}, Deadline::max());
}

void SamplerPort::keep(uint64_t lease) {
  send(*channel_, Keep{Request::kKeep, 0, lease}, Deadline::max());
}

void SamplerPort::let_go(uint64_t lease) {
  send(*channel_, LetGo{Request::kLetGo, 0, lease}, Deadline::max());
}

// Requests batches until as many as wished are under way. Returns whether any is.
bool SamplerPort::ask(uint32_t wished, Deadline deadline) {
  while (num_asked_ < wished && send(*channel_, SampleMessage{}, deadline)) ++num_asked_;
  return num_asked_ > 0;
}

void SamplerPort::take_batch(std::span<const std::byte> reply, Delivery* delivery) {
  const auto batch = read<Batch>(reply);
  delivery->lease = batch.lease;
  delivery->table_size = batch.table_size;
  std::span<const std::byte> rest = reply.subspan(sizeof batch);
  rest = take(rest, batch.num_samples, &delivery->keys);
  rest = take(rest, batch.num_samples, &delivery->probabilities);
  take(rest, batch.num_pieces, &delivery->pieces);
  delivery->data = channel_->pop_reply();
}

}  // namespace tengen::store
