#pragma once
// Waits until at least one of many descriptors is readable or writable.

#include <sys/epoll.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tengen::transport {

// A set of descriptors, owned by the caller. Single-threaded. Idle descriptors cost nothing.
class Readiness {
 public:
  struct Event {
    uint64_t key;
    bool can_read;  // also true if the other side has closed, which read() then reports
    bool can_write;
  };

  Readiness();
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;
  ~Readiness();

  // Adds a descriptor to wait for until it is readable. Throws Error if resources are exhausted.
  void add(int descriptor, uint64_t key);
  // Sets whether wait() also returns when the descriptor is writable.
  void want_room(int descriptor, uint64_t key, bool wants_room);
  void remove(int descriptor);

  // Blocks for at most `timeout_s` seconds, rounded up to milliseconds, or without limit if
  // negative. Returns each ready descriptor once; the next call overwrites the result.
  std::span<const Event> wait(double timeout_s);

 private:
  void control(int action, int descriptor, uint64_t key, uint32_t events);

  const int epoll_;
  std::vector<epoll_event> ready_;
  std::vector<Event> events_;
};

}  // namespace tengen::transport
