#pragma once
// The fuzz targets: readers of bytes from a file or from another process.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tengen::fuzz {

struct Target {
  const char* name;  // of the target, and of its folder in core/fuzz/found
  // Reads untrusted bytes. They must be read, or rejected with a tengen::Error, which the target
  // catches. Any other exception, a signal, a hang or excessive memory use is a fault.
  void (*run)(std::string_view bytes);
  // Valid inputs, made by the program itself, to start from.
  std::vector<std::string> (*seeds)();
};

// One list per file.
std::vector<Target> record_targets();
std::vector<Target> store_file_targets();
std::vector<Target> store_wire_targets();
std::vector<Target> store_model_targets();
std::vector<Target> row_targets();
// All of them.
std::vector<Target> targets();

// Removes the first byte of the input and returns it as a number; 0 if there is none.
inline unsigned char take_byte(std::string_view* bytes) {
  if (bytes->empty()) return 0;
  const auto front = static_cast<unsigned char>(bytes->front());
  bytes->remove_prefix(1);
  return front;
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <class T>
std::string as_text(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

// Ends the process if the condition does not hold.
void expect(bool holds, const char* what);

}  // namespace tengen::fuzz
