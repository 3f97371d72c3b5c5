#include "transport/readiness.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace tengen::transport {
namespace {

// The maximum number of events per epoll_wait(). The next call returns the remaining events.
constexpr size_t kMostReady = 1024;

int milliseconds(double timeout_s) {
  // Rounds up. Rounded to 0 ms, a short timeout would make the caller poll in a busy loop.
  return timeout_s < 0 ? -1 : static_cast<int>(std::ceil(std::min(timeout_s, 1e6) * 1e3));
}

[[noreturn]] void fail(int reason) {
  throw Error(std::string("descriptors (polled) cannot be waited for: ") + std::strerror(reason) +
              "; close others, or raise ulimit -n");
}

}  // namespace

Readiness::Readiness() : epoll_(epoll_create1(EPOLL_CLOEXEC)), ready_(kMostReady) {
  if (epoll_ < 0) fail(errno);
  events_.reserve(kMostReady);
}

Readiness::~Readiness() { ::close(epoll_); }

void Readiness::add(int descriptor, uint64_t key) {
  control(EPOLL_CTL_ADD, descriptor, key, EPOLLIN);
}

void Readiness::want_room(int descriptor, uint64_t key, bool wants_room) {
  control(EPOLL_CTL_MOD, descriptor, key, wants_room ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void Readiness::remove(int descriptor) { epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr); }

std::span<const Readiness::Event> Readiness::wait(double timeout_s) {
  const int count =
      epoll_wait(epoll_, ready_.data(), static_cast<int>(kMostReady), milliseconds(timeout_s));
  events_.clear();
  for (int i = 0; i < count; ++i) {
    const epoll_event& one = ready_[static_cast<size_t>(i)];
    const bool has_gone = (one.events & (EPOLLHUP | EPOLLERR)) != 0;
    events_.push_back(
        {one.data.u64, has_gone || (one.events & EPOLLIN) != 0, (one.events & EPOLLOUT) != 0});
  }
  return events_;
}

void Readiness::control(int action, int descriptor, uint64_t key, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  if (epoll_ctl(epoll_, action, descriptor, &event) != 0) fail(errno);
}

}  // namespace tengen::transport
