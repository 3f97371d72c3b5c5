#pragma once
// Slots: indices in an array that are reused when their elements have been removed.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tengen::store::engine {

// Returns the slot for a new element of `values`: a slot from `free`, or the next index. Reserves
// memory in `free`, so that returning the slot needs none.
template <class Value>
uint32_t take_slot(std::vector<Value>* values, std::vector<uint32_t>* free) {
  if (free->empty()) {
    if (free->capacity() <= values->size()) free->reserve(2 * values->size() + 1);
    values->emplace_back();
    return static_cast<uint32_t>(values->size() - 1);
  }
  const uint32_t slot = free->back();
  free->pop_back();
  return slot;
}

// A set of slots in one dense array, so that any member can be sampled or removed in constant time.
// Not thread-safe.
class SlotSet {
 public:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  uint32_t operator[](uint32_t place) const { return members_[place]; }
  bool contains(uint32_t slot) const { return place_of(slot) != kAbsent; }
  uint32_t place_of(uint32_t slot) const { return slot < places_.size() ? places_[slot] : kAbsent; }

  // Reserves memory, so that push() of slots below `num_slots` allocates none.
  void reserve(size_t num_slots) {
    members_.reserve(num_slots);
    places_.reserve(num_slots);
  }
  void push(uint32_t slot) {
    if (slot >= places_.size()) places_.resize(size_t{slot} + 1, kAbsent);
    places_[slot] = size();
    members_.push_back(slot);
  }
  void remove(uint32_t slot) {
    swap(places_[slot], size() - 1);
    members_.pop_back();
    places_[slot] = kAbsent;
  }
  // Exchanges the slots at positions `a` and `b`.
  void swap(uint32_t a, uint32_t b) {
    std::swap(members_[a], members_[b]);
    places_[members_[a]] = a;
    places_[members_[b]] = b;
  }

 private:
  std::vector<uint32_t> members_;
  std::vector<uint32_t> places_;  // positions by slot; kAbsent if not a member
};

}  // namespace tengen::store::engine
