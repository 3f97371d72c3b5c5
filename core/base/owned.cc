#include "base/owned.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace tengen {
namespace {

constexpr int kMaxDescriptors = 1 << 20;
constexpr int kBits = 64;
// One bit per descriptor: whether it is owned. Atomic, because disown_descriptor() takes no lock.
std::array<std::atomic<uint64_t>, kMaxDescriptors / kBits> is_owned{};
std::atomic<int> num_words = 0;  // 1 + the highest index of a word of is_owned that was used
int nothing = -1;                // an open descriptor of /dev/null
// Held during a fork, and while an owned descriptor is created or closed. The holder makes only
// non-blocking system calls, and takes no other lock.
std::mutex forking;
uint64_t num_forks = 0;  // guarded by `forking`

// Replaces each owned descriptor with /dev/null instead of closing it. A closed number could be
// reused for another file, which the destructor of the old owner would then close.
void let_go_in_child() {
  for (int word = 0; word < num_words.load(); ++word) {
    const uint64_t owned = is_owned[static_cast<size_t>(word)].exchange(0);
    for (int bit = 0; bit < kBits; ++bit) {
      if ((owned >> bit & 1) == 0) continue;
      const int descriptor = word * kBits + bit;
      if (nothing < 0 || dup2(nothing, descriptor) < 0) {
        ::close(descriptor);
      } else {
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
      }
    }
  }
}

void begin() {
  nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  pthread_atfork(
      [] {
        forking.lock();
        ++num_forks;
      },
      [] { forking.unlock(); },
      [] {
        let_go_in_child();
        forking.unlock();
      });
}

std::unique_lock<std::mutex> lock_forks() {
  static std::once_flag once;
  std::call_once(once, begin);
  return std::unique_lock(forking);
}

void set_owned(int descriptor) {
  if (descriptor < 0 || descriptor >= kMaxDescriptors) return;
  const int word = descriptor / kBits;
  is_owned[static_cast<size_t>(word)] |= uint64_t{1} << descriptor % kBits;
  for (int known = num_words; known <= word && !num_words.compare_exchange_weak(known, word + 1);) {
  }
}

}  // namespace

void own_descriptor(int descriptor) {
  const auto lock = lock_forks();
  set_owned(descriptor);
}

void disown_descriptor(int descriptor) {
  if (descriptor < 0 || descriptor >= kMaxDescriptors) return;
  is_owned[static_cast<size_t>(descriptor / kBits)] &= ~(uint64_t{1} << descriptor % kBits);
}

void close_owned(int descriptor) {
  if (descriptor < 0) return;
  const auto lock = lock_forks();
  disown_descriptor(descriptor);
  ::close(descriptor);
}

int accept_owned(int listener) {
  const auto lock = lock_forks();
  pollfd poll_of{listener, POLLIN, 0};
  const int num_ready = poll(&poll_of, 1, 0);
  if (num_ready == 0) errno = EAGAIN;
  if (num_ready <= 0) return -1;
  const int descriptor = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  set_owned(descriptor);
  return descriptor;
}

int dup_owned(int descriptor) {
  const auto lock = lock_forks();
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  set_owned(copy);
  return copy;
}

int open_owned(const char* path, int flags, int mode) {
  auto lock = lock_forks();
  // Releases the lock for open(), which may block on a network file system.
  for (;;) {
    const uint64_t before = num_forks;
    lock.unlock();
    const int descriptor = ::open(path, flags | O_CLOEXEC, mode);
    if (descriptor < 0) return -1;
    lock.lock();
    if (num_forks == before) {
      set_owned(descriptor);
      return descriptor;
    }
    // A process forked meanwhile may have inherited the descriptor, so open the file again.
    lock.unlock();
    ::close(descriptor);
    lock.lock();
  }
}

}  // namespace tengen
