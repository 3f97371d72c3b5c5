#pragma once
// The exceptions of the core. Messages have the form "<name> (<value>) <rule>; <what to do>".

#include <stdexcept>
#include <string>
#include <type_traits>

namespace tengen {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Thrown when a system resource such as descriptors is exhausted; a retry may succeed.
class ShortageError : public Error {
 public:
  using Error::Error;
};

// Thrown when a disk is full or a quota is exceeded.
class DiskFullError : public ShortageError {
 public:
  using ShortageError::ShortageError;
};

// Throws an Error about `value` if `holds` is false. `rule` is the rest of the message.
inline void check(bool holds, const char* name, const std::string& value, const char* rule) {
  if (!holds) throw Error(std::string(name) + " (" + value + ") " + rule);
}
// Same for a number, which is formatted only if the check fails.
template <class Number>
  requires std::is_arithmetic_v<Number>
void check(bool holds, const char* name, Number value, const char* rule) {
  if (!holds) check(false, name, std::to_string(value), rule);
}

}  // namespace tengen
