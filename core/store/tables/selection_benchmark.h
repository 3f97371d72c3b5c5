#pragma once
// Benchmarks the sampling of a selector alone, on one thread.

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "store/tables/selector.h"

namespace tengen::store::engine {

// Returns the seconds to sample `num_batches` batches from `num_items` slots. For the prioritized
// sampler, the priorities of the sampled slots change after each batch, as with a learner.
inline double benchmark_selection(const SelectorConfig& config, uint32_t num_items,
                                  uint32_t batch_size, uint32_t num_batches) {
  const std::unique_ptr<Selector> selector = make_selector(config);
  Rng rng(1, 0, 0, 0, Purpose::kReplay);
  for (uint32_t slot = 0; slot < num_items; ++slot) {
    selector->insert(slot, slot, 0.1 + rng.uniform());
  }
  std::vector<Draw> draws(batch_size);
  std::vector<uint32_t> slots(batch_size);
  std::vector<double> priorities(batch_size);
  const auto begin = std::chrono::steady_clock::now();
  for (uint32_t i = 0; i < num_batches; ++i) {
    selector->draw_batch(rng, draws);
    if (config.kind != "prioritized") continue;
    for (uint32_t j = 0; j < batch_size; ++j) {
      slots[j] = draws[j].slot;
      priorities[j] = 0.1 + rng.uniform();
    }
    selector->set_priorities(slots, priorities);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count();
}

}  // namespace tengen::store::engine
