#include "python/store_values.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <memory>

#include "base/error.h"
#include "python/gil.h"
#include "store/state/saved.h"
#include "store/steps/pool.h"
#include "transport/shared_memory.h"

namespace nb = nanobind;

namespace tengen {
store::Deadline after(double seconds) {
  if (!(seconds < 1e9)) return store::Deadline::max();
  return std::chrono::steady_clock::now() +
         std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

store::engine::Schema schema_of(const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk) {
  std::vector<store::engine::Column> made;
  for (const auto& [name, dtype, shape] : columns) made.push_back({name, dtype, shape, 0});
  return {std::move(made), steps_per_chunk};
}

store::SlabMap map_slabs(const std::string& directory, uint32_t pool, uint32_t slots_per_slab,
                         uint64_t stride) {
  auto maps = std::make_shared<std::vector<transport::SharedMemory>>();
  return {slots_per_slab, stride, [=](uint32_t index) {
            maps->push_back(transport::SharedMemory::open(
                directory + "/" + store::engine::Slots::slab_name(pool, index),
                slots_per_slab * stride));
            return maps->back().data();
          }};
}

store::SessionAddress address_of(int descriptor, const std::string& memory_path,
                                 const store::SessionLayout& layout, const nb::callable& reconnect,
                                 double patience_s) {
  // A shared_ptr, so that copies of the function do not need the GIL.
  const auto call = [held = std::make_shared<nb::callable>(reconnect)] {
    const GilHeld acquire;
    const nb::object answer = (*held)();
    if (nb::isinstance<nb::str>(answer)) throw Error(nb::cast<std::string>(answer));
    return nb::cast<int>(answer);
  };
  const auto patience = std::chrono::milliseconds(static_cast<int64_t>(patience_s * 1000.0));
  return {descriptor, memory_path, layout, call, patience};
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
