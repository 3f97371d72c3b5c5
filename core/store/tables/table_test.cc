#include "store/tables/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// Counts held steps, to detect leaks and double releases.
class Counter final : public StepHolder {
 public:
  void hold(const StepRange& steps) override {
    held_ += steps.num_steps;
    num_touched_ += steps.num_steps;
  }
  void let_go(const StepRange& steps) override {
    held_ -= steps.num_steps;
    num_touched_ += steps.num_steps;
  }
  uint64_t num_touched() const override { return num_touched_; }
  int64_t held() const { return held_; }

 private:
  int64_t held_ = 0;
  uint64_t num_touched_ = 0;
};

NewItem item_of(uint32_t steps, double priority = 1.0) { return {{0, 0, steps}, priority}; }

std::vector<Sample> draw(Table& table, size_t count) {
  TENGEN_CHECK(table.samples_allowed(count) == count);
  std::vector<Sample> samples(count);
  table.sample(samples);
  return samples;
}

std::vector<int64_t> keys_of(const std::vector<Sample>& samples) {
  std::vector<int64_t> keys;
  for (const Sample& sample : samples) keys.push_back(sample.key);
  return keys;
}

// A queue yields each item once and in order; a dying consumer neither loses nor duplicates a use.
void check_queue() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "fifo";
  config.max_times_sampled = 1;
  config.limits = {1.0, 1, 0.0, 10.0};
  config.max_items = 100;
  Table table(config, 0, &counter);
  std::vector<int64_t> inserted;
  while (table.inserts_allowed(1) == 1) inserted.push_back(*table.insert(item_of(1)));
  TENGEN_CHECK(inserted.size() == 10);
  const std::vector<Sample> first = draw(table, 4);
  const std::vector<Sample> second = draw(table, 4);
  TENGEN_CHECK(table.samples_allowed(9) == 2);
  TENGEN_CHECK(keys_of(first) == std::vector(inserted.begin(), inserted.begin() + 4));
  table.give_back(keys_of(first));
  table.commit(keys_of(second));
  TENGEN_CHECK(table.size() == 6 && table.samples_allowed(9) == 6);
  // The returned items are the oldest again.
  TENGEN_CHECK(keys_of(draw(table, 4)) == keys_of(first));
  TENGEN_CHECK(keys_of(draw(table, 2)) == std::vector(inserted.begin() + 8, inserted.end()));
  TENGEN_CHECK(table.samples_allowed(1) == 0 && counter.held() == 6);
  // Commits of removed items are ignored.
  table.commit(keys_of(second));
  TENGEN_CHECK(table.size() == 6);
}

void check_slices() {
  Counter counter;
  TableConfig config;
  config.num_steps = 3;
  Table table(config, 0, &counter);
  TENGEN_CHECK(throws([&] { table.insert(item_of(2)); }));
  table.insert({{10, 7, 6}, 1.0});
  std::map<uint64_t, int> starts;
  for (const Sample& sample : draw(table, 400)) {
    TENGEN_CHECK(sample.steps.stream == 7 && sample.steps.num_steps == 3);
    TENGEN_CHECK(sample.probability == 0.25);
    ++starts[sample.steps.first];
  }
  TENGEN_CHECK(starts.size() == 4 && starts.begin()->first == 10 && starts.rbegin()->first == 13);
  for (const auto& [start, count] : starts) TENGEN_CHECK(count > 50);
}

void check_capacity() {
  Counter counter;
  TableConfig config;
  config.max_items = 1000;
  config.max_steps = 20;
  config.sampler.kind = "fifo";
  Table table(config, 0, &counter);
  for (int i = 0; i < 10; ++i) table.insert(item_of(4));
  TENGEN_CHECK(table.size() == 5 && counter.held() == 20);
  TENGEN_CHECK(throws([&] { table.insert(item_of(21)); }));
  TENGEN_CHECK(table.size() == 5);
  table.set_capacity(2, 20);
  TENGEN_CHECK(!table.remove_some() && table.size() == 2);
  // The oldest items were removed, and the newest two are left.
  std::set<int64_t> left;
  for (int i = 0; i < 2; ++i) {
    const int64_t key = draw(table, 1)[0].key;
    left.insert(key >> 28);
    TENGEN_CHECK(table.erase(key) && !table.erase(key));
  }
  TENGEN_CHECK((left == std::set<int64_t>{8, 9}));
  TENGEN_CHECK(table.samples_allowed(1) == 0 && counter.held() == 0);
  TENGEN_CHECK(throws([&] { table.set_capacity(0, 20); }));
}

// Many items are removed in steps, by any of the calls.
void check_shrinking() {
  Counter counter;
  TableConfig config;
  config.max_items = 10000;
  Table table(config, 0, &counter);
  for (int i = 0; i < 10000; ++i) table.insert(item_of(1));
  table.set_capacity(10, UINT64_MAX);
  TENGEN_CHECK(table.size() == 10000);
  TENGEN_CHECK(table.remove_some() && table.size() == 9000);
  TENGEN_CHECK(!table.insert(item_of(1)) && table.size() == 8000);
  while (table.remove_some()) {
  }
  TENGEN_CHECK(table.size() == 10 && counter.held() == 10);
  table.insert(item_of(1));
  TENGEN_CHECK(table.size() == 10);
}

// Items that one long item replaces are also removed in steps, with fewer long items per step.
void check_long_items_go_in_steps() {
  Counter counter;
  TableConfig config;
  config.max_steps = 10000;
  Table table(config, 0, &counter);
  for (int i = 0; i < 10000; ++i) table.insert(item_of(1));
  for (uint64_t left = 10000; left > 1000; left -= 1000) {
    TENGEN_CHECK(table.size() == left && !table.insert(item_of(9500)));
  }
  TENGEN_CHECK(table.insert(item_of(9500)) && table.size() == 501 && counter.held() == 10000);
  table.set_capacity(1000, uint64_t{1000} * kMaxSamples);
  for (int i = 0; i < 500; ++i) table.insert(item_of(kMaxSamples / 2));
  table.set_capacity(1, kMaxSamples);
  while (table.size() > 500) table.remove_some();
  const uint64_t left = table.size();
  TENGEN_CHECK(table.remove_some() && table.size() == left - 2);
}

// Unused items that leave a queue, for any reason, do not block inserts.
void check_queue_loses_items() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "fifo";
  config.max_times_sampled = 1;
  config.limits = {1.0, 1, 0.0, 4.0};
  config.max_items = 4;
  Table table(config, 0, &counter);
  const auto fill = [&] {
    uint64_t num_new = 0;
    for (; table.inserts_allowed(1) == 1; ++num_new) table.insert(item_of(1));
    return num_new;
  };
  TENGEN_CHECK(fill() == 4);
  const std::vector<Sample> lent = draw(table, 3);
  TENGEN_CHECK(fill() == 3);       // removes the three items on loan, which are the oldest
  table.give_back(keys_of(lent));  // their consumer died
  TENGEN_CHECK(table.size() == 4 && table.samples_allowed(9) == 4 && fill() == 0);
  TENGEN_CHECK(draw(table, 4).size() == 4 && fill() == 4);
  table.remove_one();
  TENGEN_CHECK(fill() == 1);
  table.set_capacity(2, UINT64_MAX);
  table.remove_some();
  TENGEN_CHECK(table.size() == 2 && table.inserts_allowed(9) == 2);
  while (table.size() > 0) table.remove_one();
  TENGEN_CHECK(table.inserts_allowed(9) == 4);
}

void check_limits() {
  Counter counter;
  TableConfig config;
  config.limits = {2.0, 6, -3.0, 8.0};
  Table table(config, 0, &counter);
  // Up to min_size items may be inserted, whatever the cursor is.
  TENGEN_CHECK(table.inserts_allowed(100) == 6 && table.samples_allowed(1) == 0);
  for (int i = 0; i < 6; ++i) table.insert(item_of(1));
  TENGEN_CHECK(table.inserts_allowed(100) == 0);  // the cursor is 12
  TENGEN_CHECK(table.samples_allowed(100) == 15);
  const std::vector<Sample> samples = draw(table, 15);
  TENGEN_CHECK(table.samples_allowed(1) == 0 && table.inserts_allowed(100) == 5);
  table.give_back(keys_of(samples));
  TENGEN_CHECK(table.samples_allowed(100) == 15);
  table.set_limits({2.0, 1, -3.0, 100.0});
  TENGEN_CHECK(table.inserts_allowed(100) == 44);
  TENGEN_CHECK(throws([&] { table.set_limits({2.0, 1, 0.0, 1.0}); }));
}

void check_priorities() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "prioritized";
  config.sampler.exponent = 1.0;
  config.max_items = 3;
  config.max_times_sampled = 2;
  Table table(config, 0, &counter);
  const int64_t a = *table.insert(item_of(1, 1.0));
  const int64_t b = *table.insert(item_of(1, 3.0));
  TENGEN_CHECK(throws([&] { table.set_priorities(std::vector{a, b}, std::vector{5.0, -1.0}); }));
  const std::vector<double> given = {2.0, 0.0, 4.0};
  table.set_priorities(std::vector<int64_t>{a, 12345, b}, given);
  for (const Sample& sample : draw(table, 2)) {
    TENGEN_CHECK(sample.probability == (sample.key == a ? 2.0 : 4.0) / 6.0);
  }
  table.insert(item_of(1, 0.5));
  table.insert(item_of(1, 0.7));  // removes the oldest item
  TENGEN_CHECK(table.size() == 3 && table.num_eligible() >= 2);
  TENGEN_CHECK(table.max_priority() == 4.0);
  TENGEN_CHECK(throws([&] { table.insert(item_of(1, -0.5)); }));
}

// A table stores priorities as floats, as its log does, so a restart changes no accepted priority.
void check_kept_priorities() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "prioritized";
  config.sampler.exponent = 1.0;
  Table table(config, 0, &counter);
  const int64_t first = *table.insert(item_of(1, 16777216.0));
  for (const double wrong : {1e39, 3.5e38, -1e-50, std::nan(""), HUGE_VAL}) {
    TENGEN_CHECK(throws([&] { table.insert(item_of(1, wrong)); }));
    TENGEN_CHECK(throws([&] { table.set_priorities(std::vector{first}, std::vector{wrong}); }));
  }
  // As floats the two priorities are equal.
  table.insert(item_of(1, 16777217.0));
  TENGEN_CHECK(draw(table, 1)[0].probability == 0.5);
  table.set_priorities(std::vector{first}, std::vector{3.4e38});
  TENGEN_CHECK(table.max_priority() == double{3.4e38f});

  Table small(config, 0, &counter);
  small.insert(item_of(1, 0.0));
  const int64_t tiny = *small.insert(item_of(1, 1e-50));
  TENGEN_CHECK(draw(small, 1)[0].key == tiny);
  Table subnormal(config, 0, &counter);
  subnormal.insert(item_of(1, 1e-40));
  TENGEN_CHECK(subnormal.max_priority() == double{std::numeric_limits<float>::min()});
}

// The maximum priority decreases again, even if new items are inserted with this priority.
void check_greatest_priority() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "prioritized";
  config.max_items = 100;
  config.remover.kind = "prioritized";  // prefers items with high priorities to the oldest
  Table table(config, 0, &counter);
  TENGEN_CHECK(table.max_priority() == 0.0);
  const int64_t key = *table.insert(item_of(1, 5.0));
  TENGEN_CHECK(table.max_priority() == 5.0);
  // A few small priorities do not lower the maximum, because they say nothing about other items.
  table.set_priorities(std::vector{key}, std::vector{0.001});
  TENGEN_CHECK(table.max_priority() == 5.0);
  table.set_priorities(std::vector{key}, std::vector{1e6});
  TENGEN_CHECK(table.max_priority() == 1e6);
  for (int i = 0; i < 999; ++i) {
    table.insert(item_of(1, table.max_priority()));
    table.set_priorities(std::vector{key}, std::vector{2.0});
    TENGEN_CHECK(table.max_priority() == 1e6);
  }
  for (int i = 0; i < 1000; ++i) {
    table.insert(item_of(1, table.max_priority()));
    table.set_priorities(std::vector{key}, std::vector{3.0});
  }
  TENGEN_CHECK(table.max_priority() == 3.0);
}

// Keys remain unique after more inserts than the bits of a key can count.
void check_many_inserts() {
  Counter counter;
  TableConfig config;
  config.sampler.kind = "fifo";
  config.max_items = 3;
  for (const int64_t before : {(int64_t{1} << 28) - 2, (int64_t{1} << 35) - 2, int64_t{1} << 40}) {
    Table table(config, 0, &counter);
    SavedTable saved;
    saved.num_serials = before;
    saved.items.push_back({key_of(before - 1, 0), {0, 0, 1}, 1.0f, 0});
    table.restore(saved, 1);
    std::set<int64_t> keys = {saved.items[0].key};
    for (int i = 0; i < 5; ++i) {
      const int64_t key = *table.insert(item_of(1));
      TENGEN_CHECK(key >= 0 && keys.insert(key).second);
      // The oldest item comes first, whatever the bits of its key.
      TENGEN_CHECK(table.size() == std::min<uint64_t>(3, static_cast<uint64_t>(i) + 2));
      TENGEN_CHECK(keys.count(draw(table, 1)[0].key) == 1);
    }
    const int64_t oldest = draw(table, 1)[0].key;
    TENGEN_CHECK(table.erase(oldest) && !table.erase(oldest));
    TENGEN_CHECK(serial_before(before + 5, oldest) == before + 2);
  }
  TENGEN_CHECK(counter.held() == 0);
}

// Random operations: every use is accounted for, and only steps of existing items are held.
void check_random(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  Counter counter;
  {
    TableConfig config;
    const char* kinds[] = {"uniform", "fifo", "prioritized"};
    config.sampler.kind = kinds[rng.below(3)];
    config.max_times_sampled = rng.below(4);
    config.max_items = 1 + rng.below(30);
    config.remover.kind = rng.below(2) == 0 ? "fifo" : "uniform";
    Table table(config, seed, &counter);
    std::map<int64_t, uint32_t> uses;           // committed or on loan, by key
    std::vector<std::vector<int64_t>> batches;  // on loan
    int64_t last = -1;
    for (int step = 0; step < 2000; ++step) {
      const uint32_t action = rng.below(5);
      if (action <= 1 && table.inserts_allowed(1) == 1) {
        const int64_t key = *table.insert(item_of(1 + rng.below(3), rng.uniform()));
        TENGEN_CHECK(key > last);
        last = key;
      } else if (action == 2) {
        const size_t count = table.samples_allowed(1 + rng.below(4));
        std::vector<Sample> samples(count);
        if (count == 0) continue;
        table.sample(samples);
        for (const Sample& sample : samples) {
          ++uses[sample.key];
          if (config.max_times_sampled != 0) {
            TENGEN_CHECK(uses[sample.key] <= config.max_times_sampled);
          }
        }
        batches.push_back(keys_of(samples));
      } else if (!batches.empty()) {
        const size_t which = rng.below(static_cast<uint32_t>(batches.size()));
        if (action == 3) {
          table.commit(batches[which]);
        } else {
          table.give_back(batches[which]);
          for (const int64_t key : batches[which]) --uses[key];
        }
        batches.erase(batches.begin() + static_cast<std::ptrdiff_t>(which));
      }
      TENGEN_CHECK(table.size() <= config.max_items);
      TENGEN_CHECK(counter.held() == static_cast<int64_t>(table.num_steps()));
    }
  }
  TENGEN_CHECK(counter.held() == 0);
}

}  // namespace

int main() {
  check_queue();
  check_queue_loses_items();
  check_slices();
  check_capacity();
  check_shrinking();
  check_long_items_go_in_steps();
  check_limits();
  check_priorities();
  check_kept_priorities();
  check_greatest_priority();
  check_many_inserts();
  for (uint64_t seed = 0; seed < 60; ++seed) check_random(seed);
  return 0;
}
