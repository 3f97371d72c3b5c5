// Tests of the memory reserve, which lets a change complete although memory is exhausted.

#include "base/steady.h"

#include <new>
#include <thread>

#include "base/shortage_testing.h"
#include "base/testing.h"

using namespace tengen;

namespace {

// Using the reserve returns it to the system, whichever thread allocated it, and however often.
void check_other_threads() {
  for (int round = 0; round < 3; ++round) {
    std::thread([] { TENGEN_CHECK(Steady::has_reserve()); }).join();
    std::thread([] {
      const Steady steady;
      const uint64_t before = num_mapped_bytes();
      std::get_new_handler()();  // as `new` does when malloc fails
      TENGEN_CHECK(before - num_mapped_bytes() == 8 << 20);
      bool is_refused = false;
      try {
        std::get_new_handler()();
      } catch (const std::bad_alloc&) {
        is_refused = true;
      }
      TENGEN_CHECK(is_refused);
    }).join();
  }
}

}  // namespace

int main() {
  check_other_threads();
  return 0;
}
