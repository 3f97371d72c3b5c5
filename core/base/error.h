#pragma once
// Exceptions thrown by the core. Messages have the form "<name> (<value>) <rule>; <advice>".

#include <stdexcept>
#include <string>
#include <type_traits>

namespace tengen {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Thrown if a system resource such as file descriptors is exhausted. A retry may succeed.
class ShortageError : public Error {
 public:
  using Error::Error;
};

// Thrown if a disk is full or a disk quota is exceeded.
class DiskFullError : public ShortageError {
 public:
  using ShortageError::ShortageError;
};

// Throws an Error if `holds` is false, with the message "<name> (<value>) <rule>".
inline void check(bool holds, const char* name, const std::string& value, const char* rule) {
  if (!holds) throw Error(std::string(name) + " (" + value + ") " + rule);
}
// Same as check() above for a number, which is formatted only if the check fails.
template <class Number>
  requires std::is_arithmetic_v<Number>
void check(bool holds, const char* name, Number value, const char* rule) {
  if (!holds) check(false, name, std::to_string(value), rule);
}

}  // namespace tengen
