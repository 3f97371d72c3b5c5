#pragma once
// A memory reserve for changes that must not stop half-way.

namespace tengen {

// While an object exists, its thread's `new` fails only after a shared reserve is also used up. So
// small allocations succeed even at a memory limit, and a change that needs many of them is
// completed. An allocation larger than the reserve still fails, and its caller must undo the
// change.
class Steady {
 public:
  Steady() noexcept;
  Steady(const Steady&) = delete;
  Steady& operator=(const Steady&) = delete;
  ~Steady();

  // Whether the reserve is available; refills it if it was used up.
  static bool has_reserve() noexcept;
  // Throws Error unless it is.
  static void check_reserve();
};

}  // namespace tengen
