#include "store/tables/selector.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "store/tables/heap.h"
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

// Draws every item once a round. An item that arrives belongs to the current round. An item that is
// given back is drawn again in the current round. If the current round has yet to draw it, because
// it was given back by an earlier round's batch, it is owed one draw more: owed draws come first,
// and count for the rounds that they were drawn for.
class WithoutReplacement final : public Selector {
 public:
  void reserve(uint32_t num_slots) override {
    slots_.reserve(num_slots);
    owed_draws_.reserve(num_slots);
  }
  void insert(uint32_t slot, int64_t, double) override {
    slots_.push(slot);
    slots_.swap(size() - 1, num_waiting_);
    ++num_waiting_;
  }
  void remove(uint32_t slot) override {
    if (slots_.place_of(slot) < num_owed_) {
      slots_.swap(slots_.place_of(slot), --num_owed_);
      owed_draws_[slot] = 0;
    }
    if (slots_.place_of(slot) < num_waiting_) slots_.swap(slots_.place_of(slot), --num_waiting_);
    slots_.remove(slot);
  }
  void give_back(uint32_t slot) override {
    const uint32_t place = slots_.place_of(slot);
    if (place >= num_waiting_) {
      slots_.swap(place, num_waiting_++);
      return;
    }
    if (slot >= owed_draws_.size()) owed_draws_.resize(size_t{slot} + 1);
    // Items that are new wait for all draws that are owed.
    if (owed_draws_[slot] == UINT8_MAX) return;
    if (owed_draws_[slot]++ == 0) slots_.swap(place, num_owed_++);
  }
  uint32_t size() const override { return slots_.size(); }
  bool contains(uint32_t slot) const override { return slots_.contains(slot); }
  Draw draw(Rng& rng) override {
    if (num_owed_ > 0) {
      const double probability = 1.0 / num_owed_;
      const uint32_t place = rng.below(num_owed_);
      const uint32_t slot = slots_[place];
      if (--owed_draws_[slot] == 0) slots_.swap(place, --num_owed_);
      return {slot, probability};
    }
    if (num_waiting_ == 0) num_waiting_ = size();
    const double probability = 1.0 / num_waiting_;
    slots_.swap(rng.below(num_waiting_), num_waiting_ - 1);
    return {slots_[--num_waiting_], probability};
  }

 private:
  SlotSet slots_;
  uint32_t num_waiting_ = 0;         // the first so many are still to be drawn in this round
  uint32_t num_owed_ = 0;            // the first so many of these are owed draws
  std::vector<uint8_t> owed_draws_;  // by slot; 0 where it has no entry
};

// By an order: of arrival or of priority.
class Ordered final : public Selector {
 public:
  enum class By { kKey, kPriority };
  Ordered(By by, bool descending) : by_(by), sign_(descending ? -1.0 : 1.0) {}

  void reserve(uint32_t num_slots) override { heap_.reserve(num_slots); }
  void insert(uint32_t slot, int64_t serial, double priority) override {
    const double order = by_ == By::kPriority ? priority : static_cast<double>(serial);
    heap_.insert(slot, sign_ * order, serial);
  }
  void remove(uint32_t slot) override { heap_.remove(slot); }
  void set_priorities(std::span<const uint32_t> slots,
                      std::span<const double> priorities) override {
    if (by_ == By::kKey) return;
    for (size_t i = 0; i < slots.size(); ++i) heap_.set_order(slots[i], sign_ * priorities[i]);
  }
  uint32_t size() const override { return heap_.size(); }
  bool contains(uint32_t slot) const override { return heap_.contains(slot); }
  Draw draw(Rng&) override { return {heap_.first(), 1.0}; }

 private:
  By by_;
  double sign_;
  Heap heap_;
};

// Source: Schaul et al. 2016, "Prioritized Experience Replay", section 3.3, proportional. Where all
// priorities are 0, all items are equal, and where the exponent is, whatever they are.
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
  // Within a range of float in which the sum over all items stays finite, and small priorities
  // stay above 0.
  float weight(double priority) const {
    if (priority == 0.0 && exponent_ > 0.0) return 0.0f;
    return static_cast<float>(std::clamp(std::pow(priority, exponent_), 1e-30, 1e28));
  }

  double exponent_;
  SumTree tree_{64};
  SlotSet slots_;
  std::vector<float> weights_;  // of a batch, kept for their memory
  std::vector<double> positions_;
  std::vector<uint32_t> found_;
};

// The newest items, evenly: how many is a function of how many there ever were. Those in the window
// and those before it each have a heap whose first is at the border, which moves by one item at a
// time.
//
// Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565), training details.
class Window final : public Selector {
 public:
  explicit Window(const PowerLaw& law) : law_(law) {}

  void reserve(uint32_t num_slots) override {
    window_.reserve(num_slots);
    inside_.reserve(num_slots);
    before_.reserve(num_slots);
    serials_.reserve(num_slots);
  }
  void insert(uint32_t slot, int64_t serial, double) override {
    if (slot >= serials_.size()) serials_.resize(size_t{slot} + 1);
    serials_[slot] = serial;
    newest_serial_ = std::max(newest_serial_, serial);
    // One that comes back after a loan and is older than the window leaves it at once.
    enter(slot);
    move_border();
  }
  void remove(uint32_t slot) override {
    if (inside_.contains(slot)) {
      inside_.remove(slot);
      window_.remove(slot);
    } else {
      before_.remove(slot);
    }
    move_border();
  }
  uint32_t size() const override { return inside_.size() + before_.size(); }
  bool contains(uint32_t slot) const override {
    return inside_.contains(slot) || before_.contains(slot);
  }
  Draw draw(Rng& rng) override {
    return {window_[rng.below(window_.size())], 1.0 / window_.size()};
  }

 private:
  double order_of(uint32_t slot) const { return static_cast<double>(serials_[slot]); }
  void enter(uint32_t slot) {
    inside_.insert(slot, order_of(slot), serials_[slot]);
    window_.push(slot);
  }

  void move_border() {
    const uint64_t num_inserted = static_cast<uint64_t>(newest_serial_ + 1);
    const uint64_t window = std::max<uint64_t>(1, law_.window(num_inserted));
    const uint64_t wanted = std::min<uint64_t>(window, size());
    while (inside_.size() > wanted) {
      const uint32_t oldest = inside_.first();
      inside_.remove(oldest);
      window_.remove(oldest);
      before_.insert(oldest, -order_of(oldest), serials_[oldest]);
    }
    while (inside_.size() < wanted) {
      const uint32_t newest = before_.first();
      before_.remove(newest);
      enter(newest);
    }
  }

  const PowerLaw law_;
  SlotSet window_;                // those of inside_, to draw from
  Heap inside_;                   // the oldest first
  Heap before_;                   // the newest first
  std::vector<int64_t> serials_;  // by slot
  int64_t newest_serial_ = -1;    // serials count all items that there ever were
};

}  // namespace

uint64_t PowerLaw::window(uint64_t num_items) const {
  if (num_items <= min_items) return num_items;
  if (max_items == min_items) return max_items;
  const double n = static_cast<double>(num_items - min_items);
  const double grown = std::pow(n + scale, exponent) - std::pow(scale, exponent);
  double growth = expand_per_item * grown / (exponent * std::pow(scale, exponent - 1.0));
  // So small an exponent that both sides of the division are 0.
  if (std::isnan(growth)) growth = 0.0;
  const double size = std::min(static_cast<double>(min_items) + growth, 9e18);
  return std::min({num_items, max_items, static_cast<uint64_t>(size)});
}

std::unique_ptr<Selector> make_selector(const SelectorConfig& config) {
  const std::string& kind = config.kind;
  if (kind == "uniform") return std::make_unique<Uniform>();
  if (kind == "without_replacement") return std::make_unique<WithoutReplacement>();
  using By = Ordered::By;
  if (kind == "fifo") return std::make_unique<Ordered>(By::kKey, false);
  if (kind == "lifo") return std::make_unique<Ordered>(By::kKey, true);
  if (kind == "min_heap") return std::make_unique<Ordered>(By::kPriority, false);
  if (kind == "max_heap") return std::make_unique<Ordered>(By::kPriority, true);
  if (kind == "prioritized") {
    check(std::isfinite(config.exponent) && config.exponent >= 0, "exponent", config.exponent,
          "must be finite and at least 0; 0 is uniform, 1 proportional");
    return std::make_unique<Prioritized>(config.exponent);
  }
  if (kind == "window") {
    check(config.window >= 1, "window", config.window, "must be at least 1; raise it");
    return std::make_unique<Window>(
        PowerLaw{.min_items = config.window, .max_items = config.window});
  }
  if (kind == "power_law_window") {
    const PowerLaw& law = config.power_law;
    check(law.min_items >= 1, "min_items", law.min_items, "must be at least 1; raise it");
    check(law.max_items >= law.min_items, "max_items", law.max_items,
          "must be at least min_items; raise it");
    check(law.exponent > 0 && law.exponent <= 1, "exponent", law.exponent,
          "must lie in (0, 1]; KataGo uses 0.65");
    check(std::isfinite(law.scale) && law.scale > 0, "scale", law.scale,
          "must be above 0; min_items is usual");
    check(law.expand_per_item > 0 && law.expand_per_item <= 1, "expand_per_item",
          law.expand_per_item, "must lie in (0, 1]; KataGo uses 0.4");
    return std::make_unique<Window>(law);
  }
  throw Error("selector (" + kind +
              ") is not known; use uniform, prioritized, fifo, lifo, min_heap, max_heap, window, "
              "power_law_window or without_replacement");
}

}  // namespace tengen::store::engine
