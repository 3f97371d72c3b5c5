#include "python/store_values.h"

#include <chrono>

#include "store/state/saved.h"

namespace nb = nanobind;

namespace tengen {
store::Deadline after(double seconds) {
  if (!(seconds < 1e9)) return store::Deadline::max();
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

void check_priorities(std::span<const double> priorities) {
  for (const double priority : priorities) (void)store::engine::kept_priority(priority);
}

ReplayBatch::ReplayBatch(store::Delivery delivery, nb::dict arrays)
    : lease(delivery.lease),
      table_size(delivery.table_size),
      keys(to_numpy(std::move(delivery.keys))),
      probabilities(to_numpy(std::move(delivery.probabilities))),
      columns(std::move(arrays)) {}

}  // namespace tengen
