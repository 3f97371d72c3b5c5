#pragma once
// Little-endian encoding of numbers in files, on hosts of any byte order.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tengen {

// Appends little-endian numbers to a string.
class ByteWriter {
 public:
  explicit ByteWriter(std::string* out) : out_(out) {}
  void u8(uint8_t value) { out_->push_back(static_cast<char>(value)); }
  void u16(uint16_t value) { put(value, 2); }
  void u32(uint32_t value) { put(value, 4); }
  void f32(float value) { put(std::bit_cast<uint32_t>(value), 4); }

 private:
  void put(uint32_t value, int num_bytes) {
    char bytes[4];
    for (int i = 0; i < num_bytes; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
    out_->append(bytes, static_cast<size_t>(num_bytes));
  }
  std::string* out_;
};

// Reads consecutive little-endian numbers. Throws an Error about `what` if too few bytes are left.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, const char* what) : bytes_(bytes), what_(what) {}
  uint8_t u8() { return static_cast<uint8_t>(get(1)); }
  uint16_t u16() { return static_cast<uint16_t>(get(2)); }
  uint32_t u32() { return get(4); }
  float f32() { return std::bit_cast<float>(get(4)); }
  size_t num_left() const { return bytes_.size() - used_; }

 private:
  uint32_t get(size_t num_bytes) {
    if (num_left() < num_bytes) {
      throw Error(std::string(what_) + " (" + std::to_string(bytes_.size()) +
                  " bytes) ends before its contents; the bytes are damaged");
    }
    uint32_t value = 0;
    for (size_t i = 0; i < num_bytes; ++i) {
      value |= uint32_t{static_cast<uint8_t>(bytes_[used_ + i])} << (8 * i);
    }
    used_ += num_bytes;
    return value;
  }
  std::string_view bytes_;
  const char* what_;
  size_t used_ = 0;
};

}  // namespace tengen
