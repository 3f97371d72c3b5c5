#pragma once
// A binary heap of slots by age, any member of which can be removed: items that come back from a
// loan are as old as they were.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tengen::store::engine {

// The first member is the one with the smallest serial. Not thread-safe.
class Heap {
 public:
  uint32_t size() const { return static_cast<uint32_t>(entries_.size()); }
  bool contains(uint32_t slot) const { return slot < places_.size() && places_[slot] != kAbsent; }
  uint32_t first() const { return entries_[0].slot; }

  // Sees to it that insert() of slots below `num_slots` needs no more memory.
  void reserve(size_t num_slots) {
    entries_.reserve(num_slots);
    places_.reserve(num_slots);
  }
  void insert(uint32_t slot, int64_t serial) {
    if (slot >= places_.size()) places_.resize(size_t{slot} + 1, kAbsent);
    entries_.push_back({serial, slot});
    places_[slot] = size() - 1;
    rise(size() - 1);
  }
  void remove(uint32_t slot) {
    const uint32_t place = places_[slot];
    places_[slot] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.slot == slot) return;
    put(place, last);
    rise(place);
    sink(places_[last.slot]);
  }

 private:
  static constexpr uint32_t kAbsent = UINT32_MAX;

  struct Entry {
    int64_t serial;
    uint32_t slot;
    bool operator<(const Entry& other) const { return serial < other.serial; }
  };

  void put(uint32_t place, const Entry& entry) {
    entries_[place] = entry;
    places_[entry.slot] = place;
  }
  void rise(uint32_t place) {
    const Entry entry = entries_[place];
    while (place > 0) {
      const uint32_t parent = (place - 1) / 2;
      if (!(entry < entries_[parent])) break;
      put(place, entries_[parent]);
      place = parent;
    }
    put(place, entry);
  }
  void sink(uint32_t place) {
    const Entry entry = entries_[place];
    for (;;) {
      uint32_t child = 2 * place + 1;
      if (child >= size()) break;
      if (child + 1 < size() && entries_[child + 1] < entries_[child]) ++child;
      if (!(entries_[child] < entry)) break;
      put(place, entries_[child]);
      place = child;
    }
    put(place, entry);
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> places_;  // by slot
};

}  // namespace tengen::store::engine
