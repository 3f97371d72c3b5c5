#pragma once
// A memory reserve for changes that must not fail halfway.

namespace tengen {

// While a thread holds a Steady, its `new` fails only after a reserve shared by all threads is
// exhausted too. So a change that needs many small allocations completes even at a memory limit. An
// allocation larger than the reserve still fails, and the caller must undo the change.
class Steady {
 public:
  Steady() noexcept;
  Steady(const Steady&) = delete;
  Steady& operator=(const Steady&) = delete;
  ~Steady();

  // Returns whether the reserve is available. First refills an exhausted reserve if possible.
  static bool has_reserve() noexcept;
  // Throws Error if the reserve is not available.
  static void check_reserve();
};

}  // namespace tengen
