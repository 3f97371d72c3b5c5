#pragma once
// The one exception type of the core. Messages follow the house form:
// "<name> (<value>) <rule>; <what to do>".

#include <stdexcept>
#include <string>
#include <type_traits>

namespace tengen {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Thrown where the system has none left of something, such as descriptors: the same again succeeds
// once there is some.
class ShortageError : public Error {
 public:
  using Error::Error;
};

// Thrown where a disk, or a quota on it, has no room.
class DiskFullError : public ShortageError {
 public:
  using ShortageError::ShortageError;
};

// Throws the Error of a value unless `holds`. `rule` says what the value must be, and what to do.
inline void check(bool holds, const char* name, const std::string& value, const char* rule) {
  if (!holds) throw Error(std::string(name) + " (" + value + ") " + rule);
}
// Writes the number only where it must be shown.
template <class Number>
  requires std::is_arithmetic_v<Number>
void check(bool holds, const char* name, Number value, const char* rule) {
  if (!holds) check(false, name, std::to_string(value), rule);
}

}  // namespace tengen
