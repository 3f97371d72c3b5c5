#include "base/platform.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"

namespace tengen {

uint64_t random_number() {
  // std::random_device would need a newer C library than the rest of the core.
  uint64_t number = 0;
  if (::getentropy(&number, sizeof(number)) != 0) {
    throw Error(std::string("randomness (of the system) cannot be read: ") + std::strerror(errno) +
                "; allow getrandom");
  }
  return number;
}

void kill_self() {
  ::kill(::getpid(), SIGKILL);
  std::_Exit(137);
}

}  // namespace tengen
