#pragma once
// Helpers of the store bindings: deadlines and priorities.

#include <nanobind/nanobind.h>

#include <chrono>
#include <span>

#include "python/arrays.h"
#include "store/session/channel.h"
#include "store/state/saved.h"

namespace tengen {

using Doubles = Column<double>;

inline store::Deadline after(double seconds) {
  if (!(seconds < 1e9)) return store::Deadline::max();
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

// Throws Error if a store would reject a priority, because a rejection would end the session.
inline void check_priorities(std::span<const double> priorities) {
  for (const double priority : priorities) (void)store::engine::kept_priority(priority);
}

// Called by bind_store().
void bind_store_clients(nanobind::module_& m);
void bind_store_net(nanobind::module_& m);

}  // namespace tengen
