#pragma once
// Other processes of this host, and those that are forked from this one.

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace tengen::transport {

// The process that connected to a local socket; 0 where the system does not say.
inline int64_t peer_process(int descriptor) {
#if defined(__APPLE__)
  pid_t process = 0;
  socklen_t length = sizeof process;
  if (getsockopt(descriptor, SOL_LOCAL, LOCAL_PEERPID, &process, &length) != 0) return 0;
  return process;
#else
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return 0;
  return credentials.pid;
#endif
}

// Whether there is a process of that number, perhaps another user's.
inline bool is_alive(int64_t process) {
  return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

// How many forks lie between the first process and this one: whoever has a number of before is in a
// child process, whose threads are gone and whose descriptors are the parent's too. No system call.
inline uint32_t num_forks() {
  static std::atomic<uint32_t> number = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return number.load(std::memory_order_relaxed);
}

}  // namespace tengen::transport
