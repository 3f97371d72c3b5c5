// Owned descriptors, which forked processes do not inherit.

#include "base/owned.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include "base/testing.h"

using namespace tengen;

namespace {

int num_sockets() {
  int count = 0;
  for (int descriptor = 0; descriptor < 64; ++descriptor) {
    struct stat status;
    count += fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? 1 : 0;
  }
  return count;
}

// While a thread accepts and closes connections, another one forks; no child inherits a connection.
void check_forks_meanwhile() {
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  own_descriptor(listener);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tengen-owned-" + std::to_string(getpid())))
          .string();
  TENGEN_CHECK(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const auto* where = reinterpret_cast<const sockaddr*>(&address);
  ::unlink(path.c_str());
  TENGEN_CHECK(bind(listener, where, sizeof address) == 0 && listen(listener, 8) == 0);
  TENGEN_CHECK(accept_owned(listener) == -1 && errno == EAGAIN);
  std::atomic<bool> is_over = false;
  std::thread thread([&] {
    while (!is_over) {
      const int file = open_owned("/dev/null", O_RDWR, 0);
      TENGEN_CHECK(file >= 0);
      close_owned(file);
      const int client = socket(AF_UNIX, SOCK_STREAM, 0);
      own_descriptor(client);
      TENGEN_CHECK(connect(client, where, sizeof address) == 0);
      const int taken = accept_owned(listener);
      TENGEN_CHECK(taken >= 0);
      close_owned(taken);
      close_owned(client);
    }
  });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    // A child inherits at most one socket, which the thread has created but does not own yet.
    if (child == 0) _exit(num_sockets() <= 1 ? 0 : 1);
    int status = 0;
    TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  is_over = true;
  thread.join();
  close_owned(listener);
  ::unlink(path.c_str());
}

}  // namespace

int main() {
  check_forks_meanwhile();
  int owned[2];
  int shared[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, owned) == 0);
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, shared) == 0);
  own_descriptor(owned[0]);
  own_descriptor(shared[0]);
  disown_descriptor(shared[0]);
  own_descriptor(-1);
  constexpr int kLastBit = 127;  // the last bit of its word
  TENGEN_CHECK(dup2(owned[0], kLastBit) == kLastBit);
  own_descriptor(kLastBit);
  disown_descriptor(1 << 30);
  const int copy = dup_owned(owned[0]);
  TENGEN_CHECK(copy >= 0 && fcntl(copy, F_GETFD) == FD_CLOEXEC && dup_owned(-1) == -1);
  int stop[2];
  TENGEN_CHECK(pipe(stop) == 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    ::close(stop[1]);
    ::close(owned[1]);
    ::close(shared[1]);
    // The descriptor numbers stay reserved, and operations on them do not affect the parent.
    TENGEN_CHECK(fcntl(owned[0], F_GETFD) == FD_CLOEXEC);
    TENGEN_CHECK(fcntl(kLastBit, F_GETFD) == FD_CLOEXEC);
    TENGEN_CHECK(shutdown(copy, SHUT_RDWR) != 0);
    TENGEN_CHECK(shutdown(owned[0], SHUT_RDWR) != 0);
    TENGEN_CHECK(::write(shared[0], "s", 1) == 1);
    TENGEN_CHECK(::read(stop[0], &byte, 1) == 0);  // blocks until the parent closes the pipe
    _exit(0);
  }
  ::close(stop[0]);
  TENGEN_CHECK(::write(owned[0], "o", 1) == 1);
  TENGEN_CHECK(::read(owned[1], &byte, 1) == 1 && byte == 'o');
  TENGEN_CHECK(::read(shared[1], &byte, 1) == 1 && byte == 's');
  close_owned(copy);
  for (const int descriptor : {owned[0], kLastBit}) {
    disown_descriptor(descriptor);
    ::close(descriptor);
  }
  // The other side sees the end of the connection although the child is still alive.
  TENGEN_CHECK(::read(owned[1], &byte, 1) == 0);
  ::close(stop[1]);
  int status = 0;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
