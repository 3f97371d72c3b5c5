#include "store/clients/writer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "store/session/encoding.h"
#include "transport/stream_socket.h"

namespace tengen::store {

using transport::part_of;

Writer::Writer(WriterSession session, engine::Schema schema, SlabMap slabs, uint32_t max_item_steps)
    : channel_(std::move(session.channel)),
      schema_(std::move(schema)),
      slabs_(std::move(slabs)),
      max_item_steps_(max_item_steps),
      next_sequence_(session.next_sequence),
      num_ahead_(std::max(1u, session.num_ahead)) {
  if (slabs_.is_none()) chunk_ = Arena(schema_.chunk_bytes()).take();
}

uint32_t Writer::append(std::span<const std::byte* const> columns, uint32_t count,
                        Deadline deadline) {
  const uint32_t length = schema_.steps_per_chunk();
  from_.assign(columns.begin(), columns.end());
  for (uint32_t done = 0; done < count;) {
    std::byte* const chunk = chunk_of_next(deadline);
    if (chunk == nullptr) return done;
    const uint32_t offset = static_cast<uint32_t>(num_steps_ % length);
    const uint32_t taken = std::min(count - done, length - offset);
    scatter(schema_, from_, taken, chunk, offset);
    for (size_t c = 0; c < from_.size(); ++c) from_[c] += taken * schema_.columns()[c].num_bytes;
    num_steps_ += taken;
    done += taken;
  }
  return count;
}

std::byte* Writer::chunk_of_next(Deadline deadline) {
  if (num_steps_ % schema_.steps_per_chunk() == 0) {
    const std::optional<uint32_t> slot = begin_chunk(deadline);
    if (!slot) return nullptr;
    slot_ = *slot;
  }
  return chunk_ ? chunk_.get() : slabs_.up_to(slot_).at(slot_);
}

bool Writer::insert(const InsertRun& run, Deadline deadline) {
  if (!send_run(run, deadline)) return false;
  next_sequence_ = std::max(next_sequence_, run.sequence + run.count);
  // Sends a release once per chunk, because the store frees only complete chunks.
  const uint32_t length = schema_.steps_per_chunk();
  const uint64_t kept = num_steps_ - std::min<uint64_t>(num_steps_, max_item_steps_);
  if (kept / length > num_released_ / length) {
    // If the store is busy, the release is sent after a later chunk.
    channel_->send_one(Release{.first = kept}, kAtOnce, Urgency::kSoon);
    num_released_ = kept;
  }
  return true;
}

std::optional<uint32_t> Writer::begin_chunk(Deadline deadline) {
  if (chunk_) {
    parts_.clear();
    const uint64_t end = add_steps(num_steps_);
    if (!parts_.empty() && !channel_->send(parts_, deadline, Urgency::kSoon)) return std::nullopt;
    num_sent_ = end;
    return 0;
  }
  take_slots();
  if (!has_asked_ && slots_.size() <= num_ahead_ / 2) {
    const uint32_t count = num_ahead_ - static_cast<uint32_t>(slots_.size());
    if (!channel_->send_one(TakeSlots{.count = count}, deadline)) return std::nullopt;
    has_asked_ = true;
  }
  while (slots_.empty()) {
    if (channel_->wait_for_reply(deadline).data() == nullptr) return std::nullopt;
    take_slots();
  }
  const uint32_t slot = slots_.front();
  if (!channel_->send_one(Append{.slot = slot}, deadline, Urgency::kSoon)) {
    return std::nullopt;
  }
  slots_.pop_front();
  return slot;
}

// If the store is on another host, appends to parts_ the steps before index `named` that the store
// lacks. Returns the number of steps that the store will have after parts_ is sent.
uint64_t Writer::add_steps(uint64_t named) {
  const uint64_t end = std::max(num_sent_, std::min(named, num_steps_));
  if (!chunk_ || end == num_sent_) return num_sent_;
  const uint64_t offset = num_sent_ % schema_.steps_per_chunk();
  const uint64_t num_steps = end - num_sent_;
  steps_.num_steps = static_cast<uint32_t>(num_steps);
  parts_.push_back(part_of(&steps_, sizeof steps_));
  schema_.for_each_run(chunk_.get(), offset, num_steps, [&](const std::byte* from, uint64_t bytes) {
    parts_.push_back(part_of(from, bytes));
  });
  return end;
}

bool Writer::send_run(const InsertRun& run, Deadline deadline) {
  const bool is_shared = run.priorities.size() == 1;
  const uint32_t room = channel_->max_message() - static_cast<uint32_t>(sizeof(InsertMessage));
  const uint32_t max_items = std::min<uint32_t>(kMaxItems, room / sizeof(double));
  for (uint32_t done = 0; done < run.count;) {
    const uint32_t count = std::min(run.count - done, max_items);
    const auto priorities = is_shared ? run.priorities : run.priorities.subspan(done, count);
    const InsertMessage message{
        .num_bytes = static_cast<uint32_t>(sizeof message + priorities.size_bytes()),
        .table = run.table,
        .sequence = run.sequence + done,
        .first = run.first + uint64_t{done} * run.stride,
        .count = count,
        .stride = run.stride,
        .num_steps = run.num_steps};
    parts_.clear();
    const uint64_t end =
        add_steps(message.first + uint64_t{count - 1} * run.stride + run.num_steps);
    parts_.push_back(part_of(&message, sizeof message));
    parts_.push_back(part_of(priorities.data(), priorities.size_bytes()));
    if (!channel_->send(parts_, deadline, Urgency::kSoon)) return false;
    num_sent_ = end;
    done += count;
  }
  return true;
}

void Writer::take_slots() {
  while (channel_->peek_reply().data() != nullptr) {
    const std::span<const std::byte> reply = channel_->wait_for_reply(Deadline::max());
    for (size_t at = sizeof(Slots); at < reply.size(); at += sizeof(uint32_t)) {
      slots_.push_back(read<uint32_t>(reply.subspan(at)));
    }
    has_asked_ = false;
    channel_->pop_reply();
  }
}

}  // namespace tengen::store
