#include "store/session/stream_channel.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

uint64_t bytes_of(std::span<const iovec> parts) {
  uint64_t num_bytes = 0;
  for (const iovec& part : parts) num_bytes += part.iov_len;
  return num_bytes;
}

void append(std::span<const iovec> parts, std::vector<std::byte>* to) {
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const std::byte*>(part.iov_base);
    to->insert(to->end(), bytes, bytes + part.iov_len);
  }
}

}  // namespace

StreamChannel::StreamChannel(const StreamAddress& address, uint32_t num_samples,
                             uint64_t batch_bytes)
    : socket_(transport::Connection(address.descriptor)),
      name_(address.name),
      num_samples_(num_samples),
      batch_bytes_(batch_bytes),
      arena_(batch_bytes),
      receiver_(start_thread("a connection to " + name_, [this] { receive(); })) {}

StreamChannel::~StreamChannel() {
  if (is_forked()) {
    // A forked process has neither the receiver thread nor a waiting thread, and the session
    // belongs to the parent. So the thread object is leaked.
    (void)new std::thread(std::move(receiver_));
    (void)changed_.release();
    return;
  }
  socket_.shut_down();
  receiver_.join();
}

// If the deadline expires within a message, stores the rest and sends it before the next message.
bool StreamChannel::send(std::span<iovec> parts, Deadline deadline, Urgency urgency) {
  check_process();
  if (is_over_) throw_end();
  if (urgency == Urgency::kLater) {
    append(parts, &left_);
    ++num_sent_;
    return true;
  }
  const uint64_t num_new = bytes_of(parts);
  parts_.clear();
  if (!left_.empty()) parts_.push_back(transport::part_of(left_.data(), left_.size()));
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  std::span<iovec> rest = parts_;
  do {
    if (!socket_.try_send(&rest)) throw_end();
  } while (!rest.empty() && wait_for_room(deadline));
  const uint64_t num_left = bytes_of(rest);
  const bool is_sent = num_left < num_new;
  if (num_left == 0) {
    left_.clear();
  } else if (is_sent) {
    std::vector<std::byte> left;
    append(rest, &left);
    left_.swap(left);
  } else {
    left_.erase(left_.begin(), left_.end() - static_cast<std::ptrdiff_t>(num_left - num_new));
  }
  num_sent_ += is_sent ? 1 : 0;
  return is_sent;
}

// Blocks until the stream accepts bytes. Returns false if the deadline expires.
bool StreamChannel::wait_for_room(Deadline deadline) const {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  pollfd socket{socket_.descriptor(), POLLOUT, 0};
  poll(&socket, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000)));
  return true;
}

std::span<const std::byte> StreamChannel::wait_for_reply(Deadline deadline) {
  check_process();
  std::unique_lock lock(mutex_);
  if (!changed_->wait_until(lock, deadline, [&] { return !replies_.empty() || is_over_; })) {
    return {};
  }
  if (!replies_.empty()) return replies_.front().message;
  lock.unlock();
  throw_end();
}

std::span<const std::byte> StreamChannel::peek_reply() {
  check_process();
  const std::scoped_lock lock(mutex_);
  if (replies_.empty()) return {};
  return replies_.front().message;
}

std::shared_ptr<std::byte> StreamChannel::pop_reply() {
  check_process();
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<std::byte> steps = std::move(replies_.front().steps);
  replies_.pop_front();
  return steps;
}

bool StreamChannel::wait_for_all(Deadline deadline) {
  check_process();
  if (num_flushes_ == 0 || flushed_at_ != num_sent_) {
    const Flush message{.number = num_flushes_ + 1};
    iovec part = transport::part_of(&message, sizeof message);
    if (!send({&part, 1}, deadline, Urgency::kNow)) return false;
    ++num_flushes_;
    flushed_at_ = num_sent_;
  }
  if (!left_.empty()) send({}, deadline, Urgency::kNow);
  std::unique_lock lock(mutex_);
  const auto is_flushed = [&] { return num_flushed_ == num_flushes_; };
  if (!changed_->wait_until(lock, deadline, [&] { return is_flushed() || is_over_; })) return false;
  if (is_flushed()) return true;
  lock.unlock();
  throw_end();
}

std::string StreamChannel::waits() {
  check_process();
  const std::scoped_lock lock(mutex_);
  return waits_;
}

void StreamChannel::receive() noexcept {
  std::string error = error_of([&] {
    while (receive_one()) {
    }
  });
  {
    const std::scoped_lock lock(mutex_);
    error_ = std::move(error);
    is_over_ = true;
    changed_->notify_all();
  }
  socket_.shut_down();  // ends wait_for_room()
}

// Receives one reply. Returns false if the stream has ended.
bool StreamChannel::receive_one() {
  Received received;
  const std::vector<std::byte>& message = received.message;
  const uint64_t index_bytes = num_samples_ * (sizeof(int64_t) + sizeof(double));
  const uint64_t max_bytes = std::max(sizeof(Text) + kMaxTextBytes, sizeof(Batch) + index_bytes);
  if (!read_message(socket_, max_bytes, &received.message)) return false;
  const auto kind = read<Reply>(message);
  if (kind == Reply::kBatch) {
    if (read<Batch>(message).num_samples != num_samples_) return false;
    received.steps = arena_.take();
    if (!socket_.read(received.steps.get(), batch_bytes_)) return false;
  }
  if (kind == Reply::kError) throw Error(text_of(message));
  const std::scoped_lock lock(mutex_);
  if (kind == Reply::kBatch) replies_.push_back(std::move(received));
  if (kind == Reply::kWaits) waits_ = text_of(message);
  if (kind == Reply::kFlushed) num_flushed_ = read<Flushed>(message).number;
  changed_->notify_all();
  return true;
}

// Waits for the store's last message, and throws the error that ended the session.
void StreamChannel::throw_end() {
  std::unique_lock lock(mutex_);
  changed_->wait(lock, [&] { return is_over_.load(); });
  if (error_.empty()) throw GoneError(name_);
  throw RefusedError(error_);
}

}  // namespace tengen::store
