#pragma once
// A memory reserve for state changes that must not fail halfway.

namespace tengen {

// While a thread holds a Steady, `new` in this thread can also use a reserve shared by all threads.
// So a change that needs many small allocations completes even at the memory limit. An allocation
// larger than the reserve still fails, and the caller must then undo the change.
class Steady {
 public:
  Steady() noexcept;
  Steady(const Steady&) = delete;
  Steady& operator=(const Steady&) = delete;
  ~Steady();

  // Refills the reserve if it is exhausted. Returns whether the reserve is available.
  static bool has_reserve() noexcept;
  // Throws Error if the reserve is not available.
  static void check_reserve();
};

}  // namespace tengen
