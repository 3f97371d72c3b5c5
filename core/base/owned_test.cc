// Descriptors that a forked process has no part in.

#include "base/owned.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/testing.h"

using namespace tengen;

int main() {
  int owned[2];
  int shared[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, owned) == 0);
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, shared) == 0);
  own_descriptor(owned[0]);
  own_descriptor(shared[0]);
  disown_descriptor(shared[0]);
  own_descriptor(-1);
  constexpr int kLastBit = 127;  // of its word
  TENGEN_CHECK(dup2(owned[0], kLastBit) == kLastBit);
  own_descriptor(kLastBit);
  disown_descriptor(1 << 30);
  int stop[2];
  TENGEN_CHECK(pipe(stop) == 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    ::close(stop[1]);
    ::close(owned[1]);
    ::close(shared[1]);
    // The number is nobody else's, and nothing that is done to it reaches the parent's.
    TENGEN_CHECK(fcntl(owned[0], F_GETFD) == FD_CLOEXEC);
    TENGEN_CHECK(fcntl(kLastBit, F_GETFD) == FD_CLOEXEC);
    TENGEN_CHECK(shutdown(owned[0], SHUT_RDWR) != 0);
    TENGEN_CHECK(::write(shared[0], "s", 1) == 1);
    TENGEN_CHECK(::read(stop[0], &byte, 1) == 0);  // lives on
    _exit(0);
  }
  ::close(stop[0]);
  TENGEN_CHECK(::write(owned[0], "o", 1) == 1);
  TENGEN_CHECK(::read(owned[1], &byte, 1) == 1 && byte == 'o');
  TENGEN_CHECK(::read(shared[1], &byte, 1) == 1 && byte == 's');
  for (const int descriptor : {owned[0], kLastBit}) {
    disown_descriptor(descriptor);
    ::close(descriptor);
  }
  // The other side sees the end, although the child lives.
  TENGEN_CHECK(::read(owned[1], &byte, 1) == 0);
  ::close(stop[1]);
  int status = 0;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}
