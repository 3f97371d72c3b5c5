#pragma once
// The fuzz targets, which read bytes of a file or of another process.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tengen::fuzz {

struct Target {
  const char* name;  // also the name of its folder in core/fuzz/found
  // Reads untrusted bytes, or rejects them with a tengen::Error, which the target catches. Any
  // other exception, a signal, a hang or excessive memory use is a fault.
  void (*run)(std::string_view bytes);
  // Returns valid inputs, created by the program itself, from which fuzzing starts.
  std::vector<std::string> (*seeds)();
};

// Each of these functions returns the targets of one file.
std::vector<Target> record_targets();
std::vector<Target> store_file_targets();
std::vector<Target> store_wire_targets();
std::vector<Target> store_model_targets();
std::vector<Target> row_targets();
// Returns all targets.
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

// Reports a fault and aborts if `holds` is false. `what` describes the expected behaviour.
void expect(bool holds, const char* what);

}  // namespace tengen::fuzz
