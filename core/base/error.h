#pragma once
// The one exception type of the core. Messages follow the house form:
// "<name> (<value>) <rule>; <what to do>".

#include <stdexcept>
#include <string>

namespace tengen {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace tengen
