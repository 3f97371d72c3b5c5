#pragma once
// The carrier of a session between processes of one host: shared memory with a ring of requests and
// a ring of replies, and a socket. A byte on the socket wakes the other side, and the end of the
// stream reports that it has died.

#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/ring.h"

namespace tengen::store {

// Incremented with every change of the layout of a session's memory.
constexpr uint32_t kRingVersion = 4;

// The states of a side that may have to be woken. A napping side polls within a millisecond, so it
// is woken only by a side that waits for its reply.
constexpr uint32_t kAwake = 0;
constexpr uint32_t kNaps = 1;
constexpr uint32_t kSleeps = 2;

struct SessionHeader {
  std::atomic<uint32_t> version;
  // Written by the server: the number of requests that have taken effect, and the reason why the
  // next request waits. The reason is consistent if reason_edits is even, and has the same value
  // before and after the read.
  alignas(64) std::atomic<uint64_t> num_applied;
  std::atomic<uint32_t> reason_edits;
  std::atomic<uint32_t> reason_words[32];  // zero-terminated text
  std::atomic<uint32_t> is_over;           // the server has ended the session permanently
  std::atomic<uint32_t> is_taken;          // written by the client after it has mapped the memory
  // Each side sets its own flag before it sleeps on the socket; the other side clears it and sends
  // a byte. A client never naps.
  alignas(64) std::atomic<uint32_t> client_sleeps;
  alignas(64) std::atomic<uint32_t> server_sleeps;
};

// The two rings follow the header.
struct SessionLayout {
  uint32_t request_bytes = 0;  // both sizes are powers of two
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

// Wakes the other side if it sleeps or naps. The caller must first have written the data that the
// other side waits for.
inline void wake(std::atomic<uint32_t>* sleeps, int descriptor) {
  // Both sides exchange the flag, so that the second side sees what the first side has written.
  if (sleeps->exchange(kAwake, std::memory_order_acq_rel) != kAwake) {
    const char bell = 0;
    // A full socket holds enough bytes to wake the other side, and a side that waits on a dead
    // socket notices that.
    (void)!::send(descriptor, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
}
// As wake(), but only if the other side is in `state`, which is kNaps or kSleeps.
inline void wake_if(uint32_t state, std::atomic<uint32_t>* sleeps, int descriptor) {
  // The read-modify-write of 0 changes nothing, but orders the memory accesses of the two sides.
  if (sleeps->fetch_or(0, std::memory_order_acq_rel) == state) wake(sleeps, descriptor);
}

// Write and read the reason why a request waits. Only the server writes the reason.
void write_reason(const std::string& text, SessionHeader* header);
std::string read_reason(const SessionHeader& header);

}  // namespace tengen::store
