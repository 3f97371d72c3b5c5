#pragma once
// Random bits from the operating system, and the immediate end of this process. Tested only on
// Linux.

#include <cstdint>

namespace tengen {

// Returns 64 random bits from the system, for unique names. Throws Error if they are unavailable.
uint64_t random_number();

// Ends this process immediately, like SIGKILL. Runs no destructors and flushes no buffers.
[[noreturn]] void kill_self();

}  // namespace tengen
