#pragma once
// Waits until one of many descriptors can be read or written.

#include <cstdint>
#include <span>
#include <vector>

#if defined(__linux__)
#include <sys/epoll.h>
#else
#include <poll.h>
#endif

namespace tengen::transport {

// Of descriptors that stay the caller's. For one thread. On Linux those that are silent cost
// nothing; elsewhere, untested, each costs a little at every wait.
class Readiness {
 public:
  struct Event {
    uint64_t key;
    bool can_read;  // or the other side has gone, which a read tells
    bool can_write;
  };

  Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  ~Readiness();

  // Waits for bytes to read from now on. Throws Error where the system has no room.
  void add(int descriptor, uint64_t key);
  // Also waits, or no longer, for room to write.
  void want_room(int descriptor, uint64_t key, bool wants_room);
  void remove(int descriptor);

  // Blocks for at most so many seconds, in whole milliseconds upwards; without a bound where they
  // are negative. Returns who is ready, each once; the next call overwrites it.
  std::span<const Event> wait(double timeout_s);

 private:
#if defined(__linux__)
  void control(int action, int descriptor, uint64_t key, uint32_t events);

  const int epoll_;
  std::vector<epoll_event> ready_;
#else
  std::vector<pollfd> waited_for_;
  std::vector<uint64_t> keys_;
#endif
  std::vector<Event> events_;
};

}  // namespace tengen::transport
