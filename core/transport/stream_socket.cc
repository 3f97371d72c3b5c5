#include "transport/stream_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tengen::transport {
namespace {

// Size of the read-ahead buffer for small messages.
constexpr size_t kAheadBytes = 16384;
// The maximum number of iovec entries per call (IOV_MAX on Linux).
constexpr size_t kMaxParts = 1024;
// Maximum bytes received per call. TCP reports freed buffer space to the sender only after a call.
constexpr size_t kMaxReceivedBytes = 65536;

#ifdef POLLRDHUP
constexpr short kEnded = POLLRDHUP | POLLHUP | POLLERR;
#else
constexpr short kEnded = POLLHUP | POLLERR;
#endif

ssize_t send_some(int descriptor, std::span<iovec> parts, int flags) {
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = std::min(parts.size(), kMaxParts);
  // Further parts follow immediately, so avoid sending a half-full packet.
  if (parts.size() > kMaxParts) flags |= MSG_MORE;
  ssize_t sent;
  do {
    sent = sendmsg(descriptor, &message, flags | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

// Returns `parts` without their first `num_bytes` bytes.
std::span<iovec> drop_front(std::span<iovec> parts, size_t num_bytes) {
  while (!parts.empty() && num_bytes >= parts.front().iov_len) {
    num_bytes -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (num_bytes > 0) {
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + num_bytes;
    parts.front().iov_len -= num_bytes;
  }
  return parts;
}

}  // namespace

StreamSocket::StreamSocket(Connection connection)
    : connection_(std::move(connection)), ahead_(kAheadBytes) {}

bool StreamSocket::read(void* to, uint64_t num_bytes) {
  std::byte* at = static_cast<std::byte*>(to);
  const size_t known = std::min<uint64_t>(num_bytes, end_ - begin_);
  if (known > 0) std::memcpy(at, ahead_.data() + begin_, known);
  begin_ += known;
  for (uint64_t done = known; done < num_bytes;) {
    const size_t wanted = num_bytes - done;
    // If the message is small, also reads ahead the bytes that follow it.
    iovec parts[2] = {part_of(at + done, wanted), part_of(ahead_.data(), ahead_.size())};
    const bool is_small = wanted < kAheadBytes;
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = is_small ? 2 : 1;
    const ssize_t got = recvmsg(descriptor(), &message, is_small ? 0 : MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got) > wanted ? static_cast<size_t>(got) - wanted : 0;
    done += std::min(static_cast<size_t>(got), wanted);
  }
  return true;
}

bool StreamSocket::send(std::span<iovec> parts) {
  while (!parts.empty()) {
    const ssize_t sent = send_some(descriptor(), parts, 0);
    if (sent < 0) return false;
    parts = drop_front(parts, static_cast<size_t>(sent));
  }
  return true;
}

bool StreamSocket::try_send(std::span<iovec>* parts) {
  return transport::try_send(descriptor(), parts);
}

bool StreamSocket::has_ended() const {
  pollfd socket{descriptor(), kEnded, 0};
  return poll(&socket, 1, 0) > 0 && (socket.revents & kEnded) != 0;
}

void StreamSocket::end_sending() { shutdown(descriptor(), SHUT_WR); }

void StreamSocket::shut_down() { shutdown(descriptor(), SHUT_RDWR); }

bool try_send(int descriptor, std::span<iovec>* parts) {
  while (!parts->empty()) {
    const ssize_t sent = send_some(descriptor, *parts, MSG_DONTWAIT);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    *parts = drop_front(*parts, static_cast<size_t>(sent));
  }
  return true;
}

bool try_receive(int descriptor, std::span<iovec>* parts) {
  while (!parts->empty()) {
    msghdr message{};
    size_t num_bytes = 0;
    for (const iovec& part : *parts) {
      if (message.msg_iovlen == kMaxParts || num_bytes + part.iov_len > kMaxReceivedBytes) break;
      num_bytes += part.iov_len;
      ++message.msg_iovlen;
    }
    iovec piece{parts->front().iov_base, kMaxReceivedBytes};
    message.msg_iov = message.msg_iovlen > 0 ? parts->data() : &piece;
    message.msg_iovlen = std::max<size_t>(message.msg_iovlen, 1);
    const ssize_t got = recvmsg(descriptor, &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (got == 0) return false;
    *parts = drop_front(*parts, static_cast<size_t>(got));
  }
  return true;
}

}  // namespace tengen::transport
