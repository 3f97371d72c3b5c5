#pragma once
// Whole messages over a socket that is a stream of bytes.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tengen::transport {

// Blocks wherever it says nothing else. One thread may read while another sends.
class StreamSocket {
 public:
  // Takes a connected socket over.
  explicit StreamSocket(int descriptor);
  StreamSocket(const StreamSocket&) = delete;
  StreamSocket& operator=(const StreamSocket&) = delete;
  ~StreamSocket();

  int descriptor() const { return descriptor_; }

  // Reads straight to where the bytes belong; false where the stream has ended or is broken.
  bool read(void* to, uint64_t num_bytes);
  // What is left of a message whose first word, its kind, was read.
  template <class Message>
  bool read_rest(Message* message) {
    constexpr size_t kKindBytes = sizeof message->kind;
    return read(reinterpret_cast<std::byte*>(message) + kKindBytes, sizeof *message - kKindBytes);
  }
  // Whether a byte is there now, or the end.
  bool is_readable() const;

  // Sends all parts, which it changes; false where the other side has gone.
  bool send(std::span<iovec> parts);
  // Sends what goes without waiting, and drops it from `parts`; false where the other side has
  // gone.
  bool try_send(std::span<iovec>* parts);

  // Whether the other side has ended its stream, whatever of it is not read yet.
  bool has_ended() const;
  // The other side sees the end behind what was sent.
  void end_sending();
  // Both directions end, and who waits in a call comes back.
  void shut_down();

 private:
  const int descriptor_;
  std::vector<std::byte> ahead_;  // read, and not asked for yet
  size_t begin_ = 0;              // of what is left of it
  size_t end_ = 0;
};

// The part that has these bytes.
inline iovec part_of(const void* data, uint64_t num_bytes) {
  return {const_cast<void*>(data), static_cast<size_t>(num_bytes)};
}

}  // namespace tengen::transport
