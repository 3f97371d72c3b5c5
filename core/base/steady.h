#pragma once
// Memory for changes that must not stop half-way.

namespace tengen {

// While one lives, its thread's `new` fails only once a reserve is used up too, which all threads
// share. So small allocations succeed where a limit of memory is hit, and a change of many of them
// is made whole. What needs more than the reserve still fails, and must be undone by its caller.
class Steady {
 public:
  Steady() noexcept;
  Steady(const Steady&) = delete;
  Steady& operator=(const Steady&) = delete;
  ~Steady();

  // Whether the reserve is there. Gets it anew where it was used up.
  static bool has_reserve() noexcept;
  // Throws Error unless it is.
  static void check_reserve();
};

}  // namespace tengen
