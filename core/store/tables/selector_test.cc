#include "store/tables/selector.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

struct Known {
  int64_t key;
  double priority;
};

// What a selector should draw, from all that is in it: by slot the probability of one draw. Slow
// and readable.
std::map<uint32_t, double> expected(const SelectorConfig& config,
                                    const std::map<uint32_t, Known>& items, uint64_t num_inserted) {
  std::map<uint32_t, double> out;
  const auto first = [&](auto&& before) {
    const auto it = std::min_element(items.begin(), items.end(), [&](const auto& a, const auto& b) {
      return before(a.second, b.second);
    });
    out[it->first] = 1.0;
  };
  using K = const Known&;
  if (config.kind == "fifo") {
    first([](K a, K b) { return a.key < b.key; });
  } else if (config.kind == "lifo") {
    first([](K a, K b) { return a.key > b.key; });
  } else if (config.kind == "min_heap") {
    first([](K a, K b) { return std::pair(a.priority, a.key) < std::pair(b.priority, b.key); });
  } else if (config.kind == "max_heap") {
    first([](K a, K b) { return std::pair(-a.priority, a.key) < std::pair(-b.priority, b.key); });
  } else if (config.kind == "prioritized") {
    double total = 0.0;
    for (const auto& [slot, item] : items) total += std::pow(item.priority, config.exponent);
    for (const auto& [slot, item] : items) {
      const double weight = std::pow(item.priority, config.exponent);
      if (total == 0.0) out[slot] = 1.0 / static_cast<double>(items.size());
      if (weight > 0.0) out[slot] = weight / total;
    }
  } else {
    std::vector<std::pair<int64_t, uint32_t>> by_age;
    for (const auto& [slot, item] : items) by_age.push_back({-item.key, slot});
    std::sort(by_age.begin(), by_age.end());
    size_t size = by_age.size();
    if (config.kind == "window") size = std::min<size_t>(size, config.window);
    if (config.kind == "power_law_window") {
      size = std::min<size_t>(size, config.power_law.window(num_inserted));
    }
    for (size_t i = 0; i < size; ++i) out[by_age[i].second] = 1.0 / static_cast<double>(size);
  }
  return out;
}

// Random inserts, removals, loans and changes of priority, then draws against what is expected.
void check_random(const SelectorConfig& config, uint32_t num_slots) {
  Rng rng(3, num_slots, 0, 0, Purpose::kTest);
  const std::unique_ptr<Selector> selector = make_selector(config);
  std::map<uint32_t, Known> items;
  std::map<uint32_t, Known> lent;  // taken out, to come back under their keys
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
    const auto chances = expected(config, items, static_cast<uint64_t>(serial));
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

// Items that come back are put where they belong without a look at those between: of so many, that
// would take minutes.
void check_many_that_come_back() {
  constexpr uint32_t kNumItems = 400'000;
  constexpr uint32_t kNumLent = 50'000;
  SelectorConfig config = selector_of("window");
  config.window = kNumItems;
  const std::unique_ptr<Selector> selector = make_selector(config);
  for (uint32_t i = 0; i < kNumItems; ++i) selector->insert(i, i, 1.0);
  for (uint32_t i = 0; i < kNumLent; ++i) selector->remove(i);
  for (uint32_t i = 0; i < kNumLent; ++i) selector->insert(i, i, 1.0);
  TENGEN_CHECK(selector->size() == kNumItems);
}

// Draws happen as often as their probability says.
void check_frequencies(const SelectorConfig& config) {
  Rng rng(4, 0, 0, 0, Purpose::kTest);
  const std::unique_ptr<Selector> selector = make_selector(config);
  std::map<uint32_t, Known> items;
  for (uint32_t slot = 0; slot < 40; ++slot) {
    const int64_t key = slot;
    items[slot] = {key, 0.5 + slot % 7};
    selector->insert(slot, key, items[slot].priority);
  }
  const auto chances = expected(config, items, 40);
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

void check_rounds() {
  Rng rng(5, 0, 0, 0, Purpose::kTest);
  SelectorConfig config;
  config.kind = "without_replacement";
  const std::unique_ptr<Selector> selector = make_selector(config);
  for (uint32_t slot = 0; slot < 20; ++slot) selector->insert(slot, slot + 1, 0.0);
  for (int round = 0; round < 50; ++round) {
    std::set<uint32_t> seen;
    for (int i = 0; i < 20; ++i) {
      const Draw one = selector->draw(rng);
      TENGEN_CHECK(one.probability == 1.0 / (20 - i));
      TENGEN_CHECK(seen.insert(one.slot).second);
    }
  }
  // In the middle of a round some leave and one arrives: each of the rest comes once.
  std::set<uint32_t> seen;
  for (int i = 0; i < 10; ++i) seen.insert(selector->draw(rng).slot);
  uint32_t drawn = *seen.begin();
  uint32_t waiting = 0;
  while (seen.count(waiting) != 0) ++waiting;
  selector->remove(drawn);
  selector->remove(waiting);
  selector->insert(30, 99, 0.0);
  for (int i = 0; i < 10; ++i) {
    const uint32_t slot = selector->draw(rng).slot;
    TENGEN_CHECK(slot != drawn && slot != waiting && seen.insert(slot).second);
  }
  TENGEN_CHECK(seen.count(30) == 1);
}

void check_refused() {
  SelectorConfig config;
  config.kind = "uniformly";
  TENGEN_CHECK(throws([&] { make_selector(config); }));
  config.kind = "prioritized";
  config.exponent = -1.0;
  TENGEN_CHECK(throws([&] { make_selector(config); }));
  config.kind = "window";
  config.window = 0;
  TENGEN_CHECK(throws([&] { make_selector(config); }));
}

// An item that is given back still has its turn, in its own round.
void check_given_back() {
  Rng rng(4, 0, 0, 0, Purpose::kTest);
  const std::unique_ptr<Selector> selector = make_selector(selector_of("without_replacement"));
  constexpr uint32_t kNumItems = 100;
  for (uint32_t slot = 0; slot < kNumItems; ++slot) selector->insert(slot, slot, 1.0);
  std::map<uint32_t, int> num_used;
  const auto draw = [&] { return selector->draw(rng).slot; };
  const auto use = [&](int count) {
    for (int i = 0; i < count; ++i) ++num_used[draw()];
  };
  int num_rounds = 0;
  // Before the next round begins, early in it, and late in it.
  for (const int num_between : {0, 30, 80}) {
    use(90);
    std::vector<uint32_t> lent(10);
    for (uint32_t& slot : lent) slot = draw();
    use(num_between);
    for (const uint32_t slot : lent) selector->give_back(slot);
    use(10);
    use(100 - num_between);
    num_rounds += 2;
    TENGEN_CHECK(num_used.size() == kNumItems);
    for (const auto& [slot, count] : num_used) TENGEN_CHECK(count == num_rounds);
  }
}

// An item that several rounds lent, and that came back from all of them, is owed that many draws.
void check_given_back_several_times() {
  Rng rng(6, 0, 0, 0, Purpose::kTest);
  constexpr uint32_t kNumItems = 10;
  constexpr int kNumRounds = 5;
  for (const bool leaves : {false, true}) {
    const std::unique_ptr<Selector> selector = make_selector(selector_of("without_replacement"));
    for (uint32_t slot = 0; slot < kNumItems; ++slot) selector->insert(slot, slot, 1.0);
    for (uint32_t i = 0; i < kNumRounds * kNumItems; ++i) selector->draw(rng);
    for (int i = 0; i < kNumRounds; ++i) selector->give_back(3);
    if (leaves) {
      // What it was owed leaves with it.
      selector->remove(3);
      selector->insert(3, kNumItems, 1.0);
    }
    for (int i = 0; i < (leaves ? 1 : kNumRounds); ++i) {
      const Draw one = selector->draw(rng);
      TENGEN_CHECK(one.slot == 3 && one.probability == 1.0);
    }
    std::set<uint32_t> seen;
    for (uint32_t i = 0; i < kNumItems; ++i) seen.insert(selector->draw(rng).slot);
    TENGEN_CHECK(seen.size() == kNumItems);
  }
}

}  // namespace

int main() {
  SelectorConfig config;
  config.window = 7;
  config.power_law = {5, 30, 0.65, 5.0, 0.4};
  for (const char* kind : {"uniform", "prioritized", "fifo", "lifo", "min_heap", "max_heap",
                           "window", "power_law_window"}) {
    config.kind = kind;
    check_random(config, 60);
    check_random(config, 9);
    check_frequencies(config);
  }
  config = selector_of("prioritized");
  config.exponent = 0.0;
  check_random(config, 60);
  check_many_that_come_back();
  check_rounds();
  check_given_back();
  check_given_back_several_times();
  check_refused();
  return 0;
}
