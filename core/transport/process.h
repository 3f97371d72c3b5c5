#pragma once
// Other processes on this host, and forks of this process.

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace tengen::transport {

// The process that connected to a local socket; 0 if the system does not report it.
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

// Whether a process with this id exists, possibly of another user.
inline bool is_alive(int64_t process) {
  return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

// The number of forks between the first process and this one. If the number has changed since an
// object was created, the object is now in a child process: its threads are gone, and it shares its
// descriptors with the parent. Makes no system call.
inline uint32_t num_forks() {
  static std::atomic<uint32_t> number = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return number.load(std::memory_order_relaxed);
}

}  // namespace tengen::transport
