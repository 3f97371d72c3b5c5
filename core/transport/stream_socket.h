#pragma once
// Sends and receives complete messages over a stream socket.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/connection.h"

namespace tengen::transport {

// Calls block unless stated otherwise. One thread may read while another sends.
class StreamSocket {
 public:
  explicit StreamSocket(Connection connection);
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;
  ~StreamSocket() = default;

  int descriptor() const { return connection_.descriptor(); }

  // Reads `num_bytes` directly into `to`; returns false if the stream has ended or is broken.
  bool read(void* to, uint64_t num_bytes);

  // Sends all parts and modifies their entries; returns false if the other side has gone.
  bool send(std::span<iovec> parts);
  // Sends what is possible without blocking, and removes it from `parts`; returns false if broken.
  bool try_send(std::span<iovec>* parts);

  // Whether the other side has ended its stream, even if bytes of it are still unread.
  bool has_ended() const;
  // Shuts down sending, after the bytes that were sent.
  void end_sending();
  // Shuts down both directions; blocked calls return.
  void shut_down();

 private:
  const Connection connection_;
  std::vector<std::byte> ahead_;  // bytes that were received but not requested yet
  size_t begin_ = 0;              // start of these bytes in ahead_
  size_t end_ = 0;
};

// For any kind of non-blocking socket: sends as much as possible and removes it from `parts`;
// returns false if the other side has gone.
bool try_send(int descriptor, std::span<iovec>* parts);
// Receives available bytes directly into the parts and removes them from `parts`; returns false if
// the stream has ended or is broken.
bool try_receive(int descriptor, std::span<iovec>* parts);

// Returns a message part with these bytes.
inline iovec part_of(const void* data, uint64_t num_bytes) {
  return {const_cast<void*>(data), static_cast<size_t>(num_bytes)};
}

}  // namespace tengen::transport
