#pragma once
// Reading and writing messages.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "store/session/messages.h"

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

[[noreturn]] inline void refuse(Request kind) {
  throw Error("request (" + std::to_string(static_cast<uint32_t>(kind)) +
              ") must be one of this session's; the client is of another version");
}

}  // namespace tengen::store
