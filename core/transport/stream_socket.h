#pragma once
// Sends and receives complete messages over a stream socket.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/connection.h"

namespace tengen::transport {

// A stream socket. read() and send() block. One thread may read while another thread sends.
class StreamSocket {
 public:
  explicit StreamSocket(Connection connection);
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;
  ~StreamSocket() = default;

  int descriptor() const { return connection_.descriptor(); }

  // Reads `num_bytes` directly into `to`; returns false if the stream has ended or is broken.
  bool read(void* to, uint64_t num_bytes);

  // Sends all parts, and modifies the entries. Returns false if the other side has disconnected.
  bool send(std::span<iovec> parts);
  // Sends what is possible without blocking, and drops it from `parts`. Returns false if broken.
  bool try_send(std::span<iovec>* parts);

  // Returns whether the other side has ended its stream, even if some bytes are still unread.
  bool has_ended() const;
  // Ends this side's stream after the bytes that have been sent.
  void end_sending();
  // Shuts down both directions, so that blocked calls return.
  void shut_down();

 private:
  const Connection connection_;
  std::vector<std::byte> ahead_;  // bytes that were received but not requested yet
  size_t begin_ = 0;              // start of the unread bytes in ahead_
  size_t end_ = 0;
};

// Sends as much as possible without blocking on a stream socket, and removes the sent bytes from
// `parts`. Returns false if the other side has disconnected.
bool try_send(int descriptor, std::span<iovec>* parts);
// Receives available bytes into `parts` without blocking, and removes the filled bytes from
// `parts`. Returns false if the stream has ended or is broken.
bool try_receive(int descriptor, std::span<iovec>* parts);

// Returns a message part that refers to `num_bytes` bytes at `data`.
inline iovec part_of(const void* data, uint64_t num_bytes) {
  return {const_cast<void*>(data), static_cast<size_t>(num_bytes)};
}

}  // namespace tengen::transport
