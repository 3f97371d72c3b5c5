#include "base/steady.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/error.h"

namespace tengen {
namespace {

// Larger than what malloc keeps for later, so that free() gives it back to the system.
constexpr size_t kReserveBytes = size_t{8} << 20;

std::atomic<void*> reserve = nullptr;
thread_local int depth = 0;

// The handler of `new`, which tries again when this returns.
void use_reserve() {
  void* const block = depth > 0 ? reserve.exchange(nullptr) : nullptr;
  if (block == nullptr) throw std::bad_alloc();
  std::free(block);
}

}  // namespace

Steady::Steady() noexcept { ++depth; }

Steady::~Steady() { --depth; }

bool Steady::has_reserve() noexcept {
  if (reserve.load(std::memory_order_relaxed) != nullptr) return true;
  void* const block = std::malloc(kReserveBytes);
  if (block == nullptr) return false;
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, block)) std::free(block);
  std::set_new_handler(use_reserve);
  return true;
}

void Steady::check_reserve() {
  if (!has_reserve()) {
    throw Error(
        "memory (of the process) is used up; ask for less at once, close clients, or raise "
        "ulimit -v");
  }
}

}  // namespace tengen
