#pragma once
// Which item a table draws next, or gives up next: one interface for samplers and removers.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"

namespace tengen::store::engine {

struct Draw {
  uint32_t slot;
  double probability;  // of this slot in this draw
};

// A set of slots, numbers that a table reuses for its items. Not thread-safe; nothing blocks, and
// nothing but without_replacement's new round, which swaps two counters, costs more than a
// logarithm of the size.
class Selector {
 public:
  virtual ~Selector() = default;

  // Sees to it that no call for slots below `num_slots` fails for want of memory, but
  // set_priorities() and draw_batch(). Changes nothing where it throws bad_alloc.
  virtual void reserve(uint32_t num_slots) = 0;
  // Adds a slot that is not in the set. `serial` >= 0 increases from item to item;
  // `priority` is finite and >= 0.
  virtual void insert(uint32_t slot, int64_t serial, double priority) = 0;
  // Removes a slot of the set.
  virtual void remove(uint32_t slot) = 0;
  // Gives slots of the set new priorities; the last one where a slot repeats. Does nothing where
  // priorities do not count.
  virtual void set_priorities(std::span<const uint32_t> /*slots*/,
                              std::span<const double> /*priorities*/) {}
  virtual uint32_t size() const = 0;
  // Says that a draw of a slot of the set counts for nothing.
  virtual void give_back(uint32_t /*slot*/) {}
  // Whether `slot` is in the set.
  virtual bool contains(uint32_t slot) const = 0;

  // One draw; the set stays what it was. size() >= 1.
  virtual Draw draw(Rng& rng) = 0;
  // Draws of one batch, from one state of the set: for prioritized, one from each of as many
  // equal parts of the total. size() >= 1. Changes nothing where it throws bad_alloc.
  virtual void draw_batch(Rng& rng, std::span<Draw> draws) {
    for (Draw& one : draws) one = draw(rng);
  }
};

// How many of the newest items a window that grows holds; store.WindowConfig in Python has the
// formula.
struct PowerLaw {
  uint64_t min_items = 1;
  uint64_t max_items = 20'000'000;
  double exponent = 0.65;
  double scale = 1.0;  // items over which the taper sets in
  double expand_per_item = 0.4;

  uint64_t window(uint64_t num_items) const;
};

// What a selector is made from.
struct SelectorConfig {
  // uniform, prioritized, fifo, lifo, min_heap, max_heap, window, power_law_window or
  // without_replacement.
  std::string kind = "uniform";
  double exponent = 0.6;  // of prioritized: weight = priority^exponent
  uint32_t window = 1;    // of window: how many of the newest items
  PowerLaw power_law;     // of power_law_window
};

// A selector with defaults for the rest.
inline SelectorConfig selector_of(std::string kind) {
  SelectorConfig config;
  config.kind = std::move(kind);
  return config;
}

// Throws Error for an unknown kind or a setting out of range.
std::unique_ptr<Selector> make_selector(const SelectorConfig& config);

}  // namespace tengen::store::engine
