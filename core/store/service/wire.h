#pragma once
// Reading and writing messages and the words of a session's header.

#include <sys/socket.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/service/ports.h"
#include "store/service/protocol.h"

namespace tengen::store {

// The message at the front of `bytes`. Throws Error where there are fewer bytes.
template <class T>
T read(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) {
    throw Error("message (" + std::to_string(bytes.size()) +
                " bytes) must be whole; the other process is of another version");
  }
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Reads `count` values at the front of `bytes`; returns the bytes behind them.
template <class T>
std::span<const std::byte> take(std::span<const std::byte> bytes, uint64_t count,
                                std::vector<T>* out) {
  if (bytes.size() / sizeof(T) < count) {
    throw Error("message (" + std::to_string(bytes.size()) +
                " bytes) must be whole; the other process is of another version");
  }
  out->resize(count);
  if (count > 0) std::memcpy(out->data(), bytes.data(), count * sizeof(T));
  return bytes.subspan(count * sizeof(T));
}

// Writes `value` at `to`; returns the address behind it.
template <class T>
std::byte* put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

// Wakes the other side where it sleeps or naps. The caller must have written before what that side
// waits for.
inline void wake(std::atomic<uint32_t>* sleeps, int descriptor) {
  // Both sides exchange the flag, so that the second of them sees what the first wrote before.
  if (sleeps->exchange(kAwake, std::memory_order_acq_rel) != kAwake) {
    const char bell = 0;
    // A full socket holds enough bytes to wake the other side, and whoever waits on a dead socket
    // notices it.
    (void)!::send(descriptor, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}
// The same, but only where the other side is in `state`, kNaps or kSleeps.
inline void wake_if(uint32_t state, std::atomic<uint32_t>* sleeps, int descriptor) {
  // A write that changes nothing, for the memory order of the two sides.
  if (sleeps->fetch_or(0, std::memory_order_acq_rel) == state) wake(sleeps, descriptor);
}

// The message for `count` items of a run from its item `done` on, and the priorities behind it.
inline std::pair<InsertMessage, std::span<const double>> message_of(const InsertRun& run,
                                                                    uint32_t done, uint32_t count) {
  const bool is_shared = run.priorities.size() == 1;
  const auto priorities = is_shared ? run.priorities : run.priorities.subspan(done, count);
  const InsertMessage message{Request::kInsert,
                              static_cast<uint32_t>(priorities.size()),
                              run.table,
                              run.version,
                              run.sequence + done,
                              run.first + uint64_t{done} * run.stride,
                              count,
                              run.stride,
                              run.num_steps,
                              0};
  return {message, priorities};
}

// The text that a request waits for, written by the server alone.
void write_reason(const std::string& text, SessionHeader* header);
std::string read_reason(const SessionHeader& header);

}  // namespace tengen::store
