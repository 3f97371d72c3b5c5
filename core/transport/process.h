#pragma once
// Queries about other processes on this host and about forks of this process.

#include <pthread.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

namespace tengen::transport {

// Returns the ID of the process that connected to a local socket, or 0 if it is unknown.
inline int64_t peer_process(int descriptor) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return 0;
  return credentials.pid;
}

// Returns whether a process with this ID exists, possibly of another user.
inline bool is_alive(int64_t process) {
  return kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH;
}

// Returns the number of forks between the first process and this process. If the number has changed
// since an object was created, the object is in a child process: its threads do not exist there,
// and its descriptors are shared with the parent process. Makes no system call.
inline uint32_t num_forks() {
  static std::atomic<uint32_t> number = 0;
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { number.fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
  return number.load(std::memory_order_relaxed);
}

}  // namespace tengen::transport
