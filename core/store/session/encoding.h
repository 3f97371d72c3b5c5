#pragma once
// Functions that read and write the messages of a session.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/session/messages.h"
#include "transport/stream_socket.h"

namespace tengen::store {

constexpr const char* kMustBeWholeMessage =
    "must have all its bytes; use the same version in both processes";

// Returns the value of type T at the start of `bytes`. Throws Error if `bytes` is too short.
template <class T>
T read(std::span<const std::byte> bytes) {
  check(bytes.size() >= sizeof(T), "message", bytes.size(), kMustBeWholeMessage);
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// Reads `count` values at the start of `bytes`. Returns the bytes after these values.
template <class T>
std::span<const std::byte> take(std::span<const std::byte> bytes, uint64_t count,
                                std::vector<T>* out) {
  check(bytes.size() / sizeof(T) >= count, "message", bytes.size(), kMustBeWholeMessage);
  out->resize(count);
  if (count > 0) std::memcpy(out->data(), bytes.data(), count * sizeof(T));
  return bytes.subspan(count * sizeof(T));
}

// Reads all of `bytes` as values of type T.
template <class T>
void take_all(std::span<const std::byte> bytes, std::vector<T>* out) {
  take(bytes, bytes.size() / sizeof(T), out);
}

// Returns the string in a Text message.
inline std::string text_of(std::span<const std::byte> message) {
  const auto text = message.subspan(sizeof(Text));
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

// Reads the next message of a stream, without the steps that may follow the message. Blocks.
// Returns false if the stream has ended or is broken. Throws Error if the message is longer than
// `max_bytes` or invalid.
inline bool read_message(transport::StreamSocket& from, uint64_t max_bytes,
                         std::vector<std::byte>* message) {
  MessageHead head;
  if (!from.read(&head, sizeof head)) return false;
  if (head.num_bytes < sizeof head || head.num_bytes > max_bytes) {
    throw Error("message (" + std::to_string(head.kind) + ", " + std::to_string(head.num_bytes) +
                " bytes) must be of this session; use the same version on both sides");
  }
  message->resize(head.num_bytes);
  std::memcpy(message->data(), &head, sizeof head);
  return from.read(message->data() + sizeof head, head.num_bytes - sizeof head);
}

// Writes `value` at `to`. Returns the address after the written bytes.
template <class T>
std::byte* put(std::byte* to, const T& value) {
  std::memcpy(to, &value, sizeof(T));
  return to + sizeof(T);
}

[[noreturn]] inline void refuse(Request kind) {
  throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
              ") must be one of this session's; use the same version on both sides");
}

}  // namespace tengen::store
