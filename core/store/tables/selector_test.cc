#include "store/tables/selector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

struct Known {
  int64_t key;
  double priority;
};

// Returns the probability with which a selector should sample each slot. A slow but readable
// reference.
std::map<uint32_t, double> expected(const SelectorConfig& config,
                                    const std::map<uint32_t, Known>& items) {
  std::map<uint32_t, double> out;
  if (config.kind == "fifo") {
    const auto oldest =
        std::min_element(items.begin(), items.end(),
                         [](const auto& a, const auto& b) { return a.second.key < b.second.key; });
    out[oldest->first] = 1.0;
  } else if (config.kind == "prioritized") {
    double total = 0.0;
    for (const auto& [slot, item] : items) total += std::pow(item.priority, config.exponent);
    for (const auto& [slot, item] : items) {
      const double weight = std::pow(item.priority, config.exponent);
      if (total == 0.0) out[slot] = 1.0 / static_cast<double>(items.size());
      if (weight > 0.0) out[slot] = weight / total;
    }
  } else {
    for (const auto& [slot, item] : items) out[slot] = 1.0 / static_cast<double>(items.size());
  }
  return out;
}

// Applies random inserts, removals, loans and priorities, and compares samples with the reference.
void check_random(const SelectorConfig& config, uint32_t num_slots) {
  Rng rng(3, num_slots, 0, 0, Purpose::kTest);
  const std::unique_ptr<Selector> selector = make_selector(config);
  std::map<uint32_t, Known> items;
  std::map<uint32_t, Known> lent;  // removed temporarily, to return with the same keys
  int64_t serial = 0;
  for (int round = 0; round < 4000; ++round) {
    const uint32_t slot = rng.below(num_slots);
    const uint32_t action = rng.below(8);
    const double priority = rng.below(4) == 0 ? 0.0 : rng.uniform() * 5.0;
    if (items.count(slot) == 0 && lent.count(slot) == 0) {
      const int64_t key = serial++;
      items[slot] = {key, priority};
      selector->insert(slot, key, priority);
    } else if (lent.count(slot) != 0) {
      items[slot] = lent[slot];
      lent.erase(slot);
      selector->insert(slot, items[slot].key, items[slot].priority);
    } else if (action == 0) {
      items.erase(slot);
      selector->remove(slot);
    } else if (action == 1) {
      lent[slot] = items[slot];
      items.erase(slot);
      selector->remove(slot);
    } else {
      std::vector<uint32_t> slots = {slot, slot};
      selector->set_priorities(slots, std::vector<double>{priority + 1.0, priority});
      items[slot].priority = priority;
    }
    TENGEN_CHECK(selector->size() == items.size());
    TENGEN_CHECK(selector->contains(slot) == (items.count(slot) != 0));
    if (items.empty()) continue;
    const auto chances = expected(config, items);
    std::vector<Draw> draws(1 + rng.below(8));
    if (round % 2 == 0) {
      selector->draw_batch(rng, draws);
    } else {
      for (Draw& one : draws) one = selector->draw(rng);
    }
    for (const Draw& one : draws) {
      TENGEN_CHECK(chances.count(one.slot) != 0);
      TENGEN_CHECK(std::abs(one.probability / chances.at(one.slot) - 1.0) < 1e-5);
    }
  }
}

// Returning items are inserted at their positions without a scan of the items in between, which
// would take minutes with this many items.
void check_many_that_come_back() {
  constexpr uint32_t kNumItems = 400'000;
  constexpr uint32_t kNumLent = 50'000;
  const std::unique_ptr<Selector> selector = make_selector(selector_of("fifo"));
  for (uint32_t i = 0; i < kNumItems; ++i) selector->insert(i, i, 1.0);
  for (uint32_t i = 0; i < kNumLent; ++i) selector->remove(i);
  for (uint32_t i = 0; i < kNumLent; ++i) selector->insert(i, i, 1.0);
  TENGEN_CHECK(selector->size() == kNumItems);
}

// Slots are sampled as often as their probabilities say.
void check_frequencies(const SelectorConfig& config) {
  Rng rng(4, 0, 0, 0, Purpose::kTest);
  const std::unique_ptr<Selector> selector = make_selector(config);
  std::map<uint32_t, Known> items;
  for (uint32_t slot = 0; slot < 40; ++slot) {
    const int64_t key = slot;
    items[slot] = {key, 0.5 + slot % 7};
    selector->insert(slot, key, items[slot].priority);
  }
  const auto chances = expected(config, items);
  std::map<uint32_t, int> counts;
  constexpr int kDraws = 200000;
  std::vector<Draw> draws(16);
  for (int i = 0; i < kDraws; i += 16) {
    selector->draw_batch(rng, draws);
    for (const Draw& one : draws) ++counts[one.slot];
  }
  for (const auto& [slot, chance] : chances) {
    const double sigma = std::sqrt(kDraws * chance * (1.0 - chance)) + 1.0;
    TENGEN_CHECK(std::abs(counts[slot] - kDraws * chance) < 6.0 * sigma);
  }
}

void check_refused() {
  SelectorConfig config;
  config.kind = "uniformly";
  TENGEN_CHECK(throws([&] { make_selector(config); }));
  config.kind = "prioritized";
  config.exponent = -1.0;
  TENGEN_CHECK(throws([&] { make_selector(config); }));
}

}  // namespace

int main() {
  SelectorConfig config;
  for (const char* kind : {"uniform", "prioritized", "fifo"}) {
    config.kind = kind;
    check_random(config, 60);
    check_random(config, 9);
    check_frequencies(config);
  }
  config = selector_of("prioritized");
  config.exponent = 0.0;
  check_random(config, 60);
  check_many_that_come_back();
  check_refused();
  return 0;
}
