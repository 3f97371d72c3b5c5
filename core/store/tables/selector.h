#pragma once
// The interface of samplers and removers, which choose the item that a table samples or removes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tengen::store::engine {

struct Draw {
  uint32_t slot;
  double probability;  // the probability of sampling this slot
};

// A set of slots, which chooses one of them. Slots are the indices that a table reuses for its
// items. Not thread-safe; nothing blocks. A call takes at most logarithmic time in the number of
// slots.
class Selector {
 public:
  virtual ~Selector() = default;

  // Reserves memory, so that no call for slots below `num_slots` fails for lack of memory, except
  // set_priorities() and draw_batch(). Changes nothing if it throws bad_alloc.
  virtual void reserve(uint32_t num_slots) = 0;
  // Adds a slot that is not in the set. `serial` is >= 0 and increases from item to item;
  // `priority` is finite and >= 0.
  virtual void insert(uint32_t slot, int64_t serial, double priority) = 0;
  // Removes a slot that is in the set.
  virtual void remove(uint32_t slot) = 0;
  // Sets the priorities of slots in the set. If a slot repeats, its last priority counts. Does
  // nothing if the selector ignores priorities.
  virtual void set_priorities(std::span<const uint32_t> /*slots*/,
                              std::span<const double> /*priorities*/) {}
  virtual uint32_t size() const = 0;
  // Whether `slot` is in the set.
  virtual bool contains(uint32_t slot) const = 0;

  // Samples one slot; the set does not change. Precondition: size() >= 1.
  virtual Draw draw(Rng& rng) = 0;
  // Samples one batch from a snapshot of the set. The prioritized selector uses stratified
  // sampling: it divides the total weight into draws.size() equal strata and samples one slot from
  // each. Precondition: size() >= 1. Changes nothing if it throws bad_alloc.
  virtual void draw_batch(Rng& rng, std::span<Draw> draws) {
    for (Draw& one : draws) one = draw(rng);
  }
};

// The settings of a selector.
struct SelectorConfig {
  std::string kind = "uniform";  // "uniform", "prioritized" or "fifo"
  double exponent = 0.6;         // for the prioritized kind: weight = priority^exponent
};

// Returns the config of a selector of this kind with default settings.
inline SelectorConfig selector_of(std::string kind) {
  SelectorConfig config;
  config.kind = std::move(kind);
  return config;
}

// Creates a selector. Throws Error if the kind is unknown or a setting is out of range.
std::unique_ptr<Selector> make_selector(const SelectorConfig& config);

}  // namespace tengen::store::engine
