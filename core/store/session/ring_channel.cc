#include "store/session/ring_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "store/session/encoding.h"

namespace tengen::store {
namespace {

constexpr std::chrono::milliseconds kRetry{50};

}  // namespace

RingChannel::RingChannel(const SessionAddress& address)
    : connection_(address.descriptor),
      reconnect_(address.reconnect),
      patience_(address.patience),
      memory_(transport::SharedMemory::open(address.memory_path, address.layout.num_bytes())),
      header_(reinterpret_cast<SessionHeader*>(memory_.data())),
      requests_(address.layout.requests(memory_.data())),
      replies_(address.layout.replies(memory_.data())) {
  check(header_->version.load() == kRingVersion, "session", address.memory_path,
        "must be of the same version of tengen; install one version everywhere");
  header_->is_taken.store(1);
}

bool RingChannel::send(std::span<iovec> parts, Deadline deadline, Urgency urgency) {
  uint32_t num_bytes = 0;
  for (const iovec& part : parts) num_bytes += static_cast<uint32_t>(part.iov_len);
  std::byte* to = reserve(num_bytes, deadline);
  if (to == nullptr) return false;
  for (const iovec& part : parts) {
    if (part.iov_len > 0) std::memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
  requests_.commit(num_bytes);
  ++num_sent_;
  if (urgency == Urgency::kNow) ring();
  if (urgency == Urgency::kSoon)
    wake_if(kSleeps, &header_->server_sleeps, connection_.descriptor());
  return true;
}

void RingChannel::ring() {
  check_process();
  wake(&header_->server_sleeps, connection_.descriptor());
}

std::byte* RingChannel::reserve(uint32_t num_bytes, Deadline deadline) {
  check_process();
  if (!replies_.is_empty()) check_error();
  std::byte* room = requests_.reserve(num_bytes);
  if (room != nullptr) return room;
  wait_until(deadline, [&] { return (room = requests_.reserve(num_bytes)) != nullptr; });
  return room;
}

std::span<const std::byte> RingChannel::wait_for_reply(Deadline deadline) {
  std::span<const std::byte> reply;
  wait_until(deadline, [&] { return (reply = replies_.front()).data() != nullptr; });
  check_error();
  return reply;
}

bool RingChannel::wait_for_all(Deadline deadline) {
  return wait_until(
      deadline, [&] { return header_->num_applied.load(std::memory_order_acquire) == num_sent_; });
}

template <class Ready>
bool RingChannel::wait_until(Deadline deadline, Ready&& ready) {
  check_process();
  if (!error_.empty()) throw RefusedError(error_);
  while (!ready()) {
    check_error();
    header_->client_sleeps.exchange(kSleeps, std::memory_order_acq_rel);
    if (ready()) break;
    // Wakes a napping server, which may not have seen all requests, unlike a sleeping one.
    wake_if(kNaps, &header_->server_sleeps, connection_.descriptor());
    if (gone_since_) {
      look_for_server(deadline);
      // Checks for replies again, because the new server could not wake an unconnected client.
      if (!gone_since_) continue;
    }
    if (!sleep(deadline)) return ready();
  }
  header_->client_sleeps.store(kAwake, std::memory_order_relaxed);
  return true;
}

// Blocks until a byte or the end of the socket arrives. Returns false if the deadline expires.
bool RingChannel::sleep(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0) return false;
  if (!connection_.is_open()) return true;
  pollfd socket{connection_.descriptor(), POLLIN, 0};
  const int timeout = static_cast<int>(std::min<int64_t>(left.count(), 1'000'000));
  if (poll(&socket, 1, timeout) <= 0) return true;  // the caller checks the deadline again
  char bytes[64];
  const ssize_t num_bytes = recv(connection_.descriptor(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (num_bytes == 0 || (num_bytes < 0 && errno != EAGAIN && errno != EINTR)) {
    gone_since_ = std::chrono::steady_clock::now();
  }
  return true;
}

// Tries once to reconnect to a server, and then sleeps for a moment.
void RingChannel::look_for_server(Deadline deadline) {
  check_error();
  connection_ = {};
  const auto now = std::chrono::steady_clock::now();
  if (header_->is_over.load() == 0) connection_ = transport::Connection(reconnect_());
  if (connection_.is_open()) {
    gone_since_.reset();
  } else if (header_->is_over.load() != 0 || now - *gone_since_ >= patience_) {
    throw GoneError(memory_.path());
  } else {
    std::this_thread::sleep_until(std::min(deadline, now + kRetry));
  }
}

// Throws the error of a request, if there is one. It is always the last reply.
void RingChannel::check_error() {
  const std::span<const std::byte> reply = replies_.front();
  if (reply.data() == nullptr || read<Text>(reply).kind != Reply::kError) return;
  error_ = text_of(reply);
  throw RefusedError(error_);
}

}  // namespace tengen::store
