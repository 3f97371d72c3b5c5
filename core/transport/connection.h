#pragma once
// A connected socket with one owner.

#include <utility>

#include "base/owned.h"

namespace tengen::transport {

// A socket that the destructor closes and that forked processes do not inherit.
class Connection {
 public:
  Connection() = default;
  // Takes ownership of `descriptor`, or of none if it is -1.
  explicit Connection(int descriptor) : descriptor_(descriptor) { own_descriptor(descriptor_); }
  Connection(Connection&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Connection& operator=(Connection&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Connection() { close_owned(descriptor_); }

  int descriptor() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace tengen::transport
