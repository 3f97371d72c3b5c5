#pragma once
// Whole messages over a socket that is a stream of bytes.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/connection.h"

namespace tengen::transport {

// Calls block unless they say otherwise. One thread may read while another sends.
class StreamSocket {
 public:
  explicit StreamSocket(Connection connection);
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;
  ~StreamSocket() = default;

  int descriptor() const { return connection_.descriptor(); }

  // Reads bytes straight to `to`; false where the stream has ended or is broken.
  bool read(void* to, uint64_t num_bytes);

  // Sends all parts, whose entries it changes; false where the other side has gone.
  bool send(std::span<iovec> parts);
  // Sends as much as the stream takes at once, and drops it from `parts`; false where the other
  // side has gone.
  bool try_send(std::span<iovec>* parts);

  // Whether the other side has ended its stream, even where bytes of it are not read yet.
  bool has_ended() const;
  // Ends the stream to the other side, behind the bytes that were sent.
  void end_sending();
  // Ends both directions; calls that block return.
  void shut_down();

 private:
  const Connection connection_;
  std::vector<std::byte> ahead_;  // bytes that were received and not asked for yet
  size_t begin_ = 0;              // where they begin in ahead_
  size_t end_ = 0;
};

// For a socket of whatever kind that many are served beside: sends as much as it takes at once, and
// drops it from `parts`; false where the other side has gone.
bool try_send(int descriptor, std::span<iovec>* parts);
// Receives what is there straight to the parts, and drops it from `parts`; false where the stream
// has ended or is broken.
bool try_receive(int descriptor, std::span<iovec>* parts);

// A part of a message: these bytes.
inline iovec part_of(const void* data, uint64_t num_bytes) {
  return {const_cast<void*>(data), static_cast<size_t>(num_bytes)};
}

}  // namespace tengen::transport
