#pragma once
// What carries a session between processes of one host: one memory, with a ring of requests and a
// ring of replies, and one socket, whose bytes wake the other side and whose end tells its death.

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/ring.h"

namespace tengen::store {

// Raised by every change of what lies in a session's memory.
constexpr uint32_t kRingVersion = 4;

// Whether a side must be woken. A side that naps looks by itself within a millisecond, so that only
// a side that waits for its answer need wake it.
constexpr uint32_t kAwake = 0;
constexpr uint32_t kNaps = 1;
constexpr uint32_t kSleeps = 2;

struct SessionHeader {
  std::atomic<uint32_t> version;
  // Written by the server: how many requests have taken effect, and what the next one waits for.
  // That text is whole where reason_edits is even, and the same before and after the text is read.
  alignas(64) std::atomic<uint64_t> num_applied;
  std::atomic<uint32_t> reason_edits;
  std::atomic<uint32_t> reason_words[32];  // text, ended by a zero
  std::atomic<uint32_t> is_over;           // the server has ended the session for good
  std::atomic<uint32_t> is_taken;          // written by the client: it has mapped the memory
  // Each side sets its own before it sleeps on the socket; the other takes it and sends a byte. A
  // client never naps.
  alignas(64) std::atomic<uint32_t> client_sleeps;
  alignas(64) std::atomic<uint32_t> server_sleeps;
};

// The two rings lie behind the header.
struct SessionLayout {
  uint32_t request_bytes = 0;  // powers of two
  uint32_t reply_bytes = 0;

  static constexpr uint64_t kHeaderBytes = (sizeof(SessionHeader) + 63) / 64 * 64;
  uint64_t num_bytes() const {
    return kHeaderBytes + transport::Ring::num_bytes(request_bytes) +
           transport::Ring::num_bytes(reply_bytes);
  }
  transport::Ring requests(std::byte* memory) const {
    return {memory + kHeaderBytes, request_bytes};
  }
  transport::Ring replies(std::byte* memory) const {
    return {memory + kHeaderBytes + transport::Ring::num_bytes(request_bytes), reply_bytes};
  }
};

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

// The text that a request waits for, written by the server alone.
void write_reason(const std::string& text, SessionHeader* header);
std::string read_reason(const SessionHeader& header);

}  // namespace tengen::store
