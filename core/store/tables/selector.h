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

// A set of slots, numbers that a table reuses for its items. Not thread-safe; nothing blocks or
// costs more than a logarithm of the size.
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

// What a selector is made from.
struct SelectorConfig {
  std::string kind = "uniform";  // or prioritized, or fifo
  double exponent = 0.6;         // of prioritized: weight = priority^exponent
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
