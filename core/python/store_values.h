#pragma once
// Helpers of the store bindings: deadlines, schemas, batches, and the memory of slabs.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "python/arrays.h"
#include "store/clients/sampler.h"
#include "store/session/ring_channel.h"
#include "store/state/schema.h"
#include "store/steps/gather.h"

namespace tengen {

using Doubles = Column<double>;
// The name, dtype and shape of a column.
using ColumnTuple = std::tuple<std::string, std::string, std::vector<uint32_t>>;

store::Deadline after(double seconds);
store::engine::Schema schema_of(const std::vector<ColumnTuple>& columns, uint32_t steps_per_chunk);
// Returns the slabs of one pool, mapped from the store's directory.
store::SlabMap map_slabs(const std::string& directory, uint32_t pool, uint32_t slots_per_slab,
                         uint64_t stride);

// The client's thread calls `reconnect` while it waits without the GIL. `reconnect` returns a
// descriptor, -1 if no store answers, or the reason why the session has ended.
store::SessionAddress address_of(int descriptor, const std::string& memory_path,
                                 const store::SessionLayout& layout,
                                 const nanobind::callable& reconnect, double patience_s);

// Throws Error if a store would reject a priority, because a rejection would end the session.
void check_priorities(std::span<const double> priorities);

// A batch for Python; keys and probabilities are arrays [B].
struct ReplayBatch {
  ReplayBatch(store::Delivery delivery, nanobind::dict arrays);

  uint64_t lease;
  uint64_t table_size;
  nanobind::object keys;
  nanobind::object probabilities;
  nanobind::dict columns;
};

// Called by bind_store().
void bind_store_clients(nanobind::module_& m);
void bind_store_net(nanobind::module_& m);

}  // namespace tengen
