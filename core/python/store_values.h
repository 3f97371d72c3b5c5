#pragma once
// Helpers of the store bindings: deadlines, priorities and batches.

#include <nanobind/nanobind.h>

#include <span>

#include "python/arrays.h"
#include "store/clients/sampler.h"
#include "store/session/channel.h"

namespace tengen {

using Doubles = Column<double>;

store::Deadline after(double seconds);

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
