#pragma once
// Other processes of this host.

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

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

}  // namespace tengen::transport
