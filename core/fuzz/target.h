#pragma once
// What is fuzzed: readers of bytes that come from a file or from another process.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tengen::fuzz {

struct Target {
  const char* name;  // of the target, and of its folder in core/fuzz/found
  // Reads what a stranger made. Whatever it is, it is read or refused by tengen::Error, which the
  // target catches: anything else that is thrown, a signal, a hang or too much memory is a fault.
  void (*run)(std::string_view bytes);
  // Inputs that are right, which the program itself makes, to begin with.
  std::vector<std::string> (*seeds)();
};

// One list a file.
std::vector<Target> record_targets();
std::vector<Target> store_file_targets();
std::vector<Target> store_wire_targets();
std::vector<Target> store_model_targets();
std::vector<Target> row_targets();
// All of them.
std::vector<Target> targets();

// The front of the input as a number, and the rest; 0 where there is none.
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

// A fault: ends the process where what must hold does not.
void expect(bool holds, const char* what);

}  // namespace tengen::fuzz
