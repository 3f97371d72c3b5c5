#pragma once
// Reading and writing messages.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/session/messages.h"
#include "transport/stream_socket.h"

namespace tengen::store {

constexpr const char* kMustBeWholeMessage =
    "must have all its bytes; the other process is of another version";

// The message at the front of `bytes`. Throws Error where there are fewer bytes.
template <class T>
T read(std::span<const std::byte> bytes) {
  check(bytes.size() >= sizeof(T), "message", bytes.size(), kMustBeWholeMessage);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Reads `count` values at the front of `bytes`; returns the bytes behind them.
template <class T>
std::span<const std::byte> take(std::span<const std::byte> bytes, uint64_t count,
                                std::vector<T>* out) {
  check(bytes.size() / sizeof(T) >= count, "message", bytes.size(), kMustBeWholeMessage);
  out->resize(count);
  if (count > 0) std::memcpy(out->data(), bytes.data(), count * sizeof(T));
  return bytes.subspan(count * sizeof(T));
}

// Reads the values that `bytes` are.
template <class T>
void take_all(std::span<const std::byte> bytes, std::vector<T>* out) {
  take(bytes, bytes.size() / sizeof(T), out);
}

// The text of a Text.
inline std::string text_of(std::span<const std::byte> message) {
  const auto text = message.subspan(sizeof(Text));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Reads the next message of a stream, without what may follow it. Blocks; false where the stream
// has ended or is broken. Throws Error for more bytes than `max_bytes`, and for what is no message.
inline bool read_message(transport::StreamSocket& from, uint64_t max_bytes,
                         std::vector<std::byte>* message) {
  MessageHead head;
  if (!from.read(&head, sizeof head)) return false;
  if (head.num_bytes < sizeof head || head.num_bytes > max_bytes) {
    throw Error("message (" + std::to_string(head.kind) + ", " + std::to_string(head.num_bytes) +
                " bytes) must be of this session; the other side is of another version");
  }
  message->resize(head.num_bytes);
  std::memcpy(message->data(), &head, sizeof head);
  return from.read(message->data() + sizeof head, head.num_bytes - sizeof head);
}

// Writes `value` at `to`; returns the address behind it.
template <class T>
std::byte* put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

[[noreturn]] inline void refuse(Request kind) {
  throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
              ") must be one of this session's; the client is of another version");
}

}  // namespace tengen::store
