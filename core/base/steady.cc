#include "base/steady.h"

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "base/error.h"

namespace tengen {
namespace {

// Size of the reserve. Allocated with mmap(), because other threads cannot reuse a malloc() arena.
constexpr size_t kReserveBytes = size_t{8} << 20;

std::atomic<void*> reserve = nullptr;
thread_local int depth = 0;

// Handler that frees the reserve. `new` calls it if memory is exhausted, and then retries.
void use_reserve() {
  void* const block = depth > 0 ? reserve.exchange(nullptr) : nullptr;
  if (block == nullptr) throw std::bad_alloc();
  munmap(block, kReserveBytes);
}

}  // namespace

Steady::Steady() noexcept { ++depth; }

Steady::~Steady() { --depth; }

bool Steady::has_reserve() noexcept {
  if (reserve.load(std::memory_order_relaxed) != nullptr) return true;
  void* const block =
      mmap(nullptr, kReserveBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return false;
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, block)) munmap(block, kReserveBytes);
  std::set_new_handler(use_reserve);
  return true;
}

void Steady::check_reserve() {
  if (!has_reserve()) {
    throw Error(
        "memory (of the process) is used up; request less at once, close clients, or raise "
        "ulimit -v");
  }
}

}  // namespace tengen
