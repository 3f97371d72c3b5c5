#include "store/tables/selector.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "store/tables/slot_set.h"
#include "store/tables/sum_tree.h"

namespace tengen::store::engine {
namespace {

class Uniform final : public Selector {
 public:
  void reserve(uint32_t num_slots) override { slots_.reserve(num_slots); }
  void insert(uint32_t slot, int64_t, double) override { slots_.push(slot); }
  void remove(uint32_t slot) override { slots_.remove(slot); }
  uint32_t size() const override { return slots_.size(); }
  bool contains(uint32_t slot) const override { return slots_.contains(slot); }
  Draw draw(Rng& rng) override { return {slots_[rng.below(size())], 1.0 / size()}; }

 private:
  SlotSet slots_;
};

// Always chooses the oldest item. Uses a binary heap by age, from which any member can be removed.
// Items that return from a loan keep their age.
class Fifo final : public Selector {
 public:
  void reserve(uint32_t num_slots) override {
    entries_.reserve(num_slots);
    places_.reserve(num_slots);
  }
  void insert(uint32_t slot, int64_t serial, double) override {
    if (slot >= places_.size()) places_.resize(size_t{slot} + 1, kAbsent);
    entries_.push_back({serial, slot});
    places_[slot] = size() - 1;
    rise(size() - 1);
  }
  void remove(uint32_t slot) override {
    const uint32_t place = places_[slot];
    places_[slot] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (last.slot == slot) return;
    put(place, last);
    rise(place);
    sink(places_[last.slot]);
  }
  uint32_t size() const override { return static_cast<uint32_t>(entries_.size()); }
  bool contains(uint32_t slot) const override {
    return slot < places_.size() && places_[slot] != kAbsent;
  }
  Draw draw(Rng&) override { return {entries_[0].slot, 1.0}; }

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
  std::vector<uint32_t> places_;  // heap positions, by slot
};

// Samples in proportion to priority^exponent. If all priorities are 0, or if the exponent is 0,
// sampling is uniform. Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.3,
// proportional variant.
class Prioritized final : public Selector {
 public:
  explicit Prioritized(double exponent) : exponent_(exponent) {}

  void reserve(uint32_t num_slots) override {
    slots_.reserve(num_slots);
    if (num_slots > tree_.capacity()) tree_.resize(num_slots);
  }
  void insert(uint32_t slot, int64_t, double priority) override {
    if (slot >= tree_.capacity()) tree_.resize(std::max(slot + 1, 2 * tree_.capacity()));
    slots_.push(slot);
    tree_.set(slot, weight(priority));
  }
  void remove(uint32_t slot) override {
    slots_.remove(slot);
    tree_.set(slot, 0.0f);
  }
  void set_priorities(std::span<const uint32_t> slots,
                      std::span<const double> priorities) override {
    weights_.resize(slots.size());
    for (size_t i = 0; i < slots.size(); ++i) weights_[i] = weight(priorities[i]);
    tree_.set(slots, weights_);
  }
  uint32_t size() const override { return slots_.size(); }
  bool contains(uint32_t slot) const override { return slots_.contains(slot); }
  Draw draw(Rng& rng) override {
    const double total = tree_.total();
    if (total == 0.0) return {slots_[rng.below(size())], 1.0 / size()};
    const uint32_t slot = tree_.find(rng.uniform() * total);
    return {slot, tree_.weight(slot) / total};
  }
  void draw_batch(Rng& rng, std::span<Draw> draws) override {
    const double total = tree_.total();
    if (total == 0.0) return Selector::draw_batch(rng, draws);
    positions_.resize(draws.size());
    found_.resize(draws.size());
    const double part = total / static_cast<double>(draws.size());
    for (size_t i = 0; i < draws.size(); ++i) {
      positions_[i] = (static_cast<double>(i) + rng.uniform()) * part;
    }
    tree_.find(positions_, found_);
    for (size_t i = 0; i < draws.size(); ++i) {
      draws[i] = {found_[i], tree_.weight(found_[i]) / total};
    }
  }

 private:
  // Returns the weight of a priority, clamped to a range of float in which the sum over all items
  // stays finite, and small priorities stay above 0.
  float weight(double priority) const {
    if (priority == 0.0 && exponent_ > 0.0) return 0.0f;
    return static_cast<float>(std::clamp(std::pow(priority, exponent_), 1e-30, 1e28));
  }

  double exponent_;
  SumTree tree_{64};
  SlotSet slots_;
  std::vector<float> weights_;  // weights of a batch; reused to save allocations
  std::vector<double> positions_;
  std::vector<uint32_t> found_;
};

}  // namespace

std::unique_ptr<Selector> make_selector(const SelectorConfig& config) {
  const std::string& kind = config.kind;
  if (kind == "uniform") return std::make_unique<Uniform>();
  if (kind == "fifo") return std::make_unique<Fifo>();
  if (kind == "prioritized") {
    check(std::isfinite(config.exponent) && config.exponent >= 0, "exponent", config.exponent,
          "must be finite and at least 0; use 0 for uniform, 1 for proportional");
    return std::make_unique<Prioritized>(config.exponent);
  }
  throw Error("selector (" + kind + ") is not known; use uniform, prioritized or fifo");
}

}  // namespace tengen::store::engine
