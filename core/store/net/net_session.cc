#include "store/net/net_session.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/thread.h"
#include "store/session/messages.h"

namespace tengen::store {
namespace {

constexpr std::chrono::seconds kLinger{2};

}  // namespace

void NetSession::run() noexcept {
  const std::string error = error_of([&] { serve(); });
  end();
  if (!error.empty()) send_error(error);
  linger();
}

std::string NetSession::describe() {
  const std::scoped_lock lock(mutex_);
  return name_ + (waits_.empty() ? "" : ": " + waits_);
}

bool NetSession::tell_wait(const std::string& text) {
  {
    const std::scoped_lock lock(mutex_);
    if (waits_ == text) return true;
    waits_ = text;
  }
  const Text message{Reply::kWaits, static_cast<uint32_t>(sizeof message + text.size())};
  iovec parts[] = {transport::part_of(&message, sizeof message),
                   transport::part_of(text.data(), text.size())};
  return socket_.send(parts);
}

void NetSession::send_error(const std::string& error) {
  const size_t num_bytes = std::min<size_t>(error.size(), kMaxTextBytes);
  const Text message{.num_bytes = static_cast<uint32_t>(sizeof message + num_bytes)};
  iovec parts[] = {transport::part_of(&message, sizeof message),
                   transport::part_of(error.data(), num_bytes)};
  socket_.send(parts);
  socket_.end_sending();
}

void NetSession::linger() {
  const Deadline end = std::chrono::steady_clock::now() + kLinger;
  std::byte bytes[4096];
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd socket{socket_.descriptor(), POLLIN, 0};
    if (left.count() <= 0 || poll(&socket, 1, static_cast<int>(left.count())) <= 0) return;
    if (recv(socket_.descriptor(), bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return;
  }
}

}  // namespace tengen::store
