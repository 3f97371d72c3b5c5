// Tables that run out of memory in the middle of a change.

#include <algorithm>
#include <string>
#include <vector>

#include "base/shortage_testing.h"
#include "base/testing.h"
#include "store/state/state.h"
#include "store/tables/table.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

class StepCounter final : public StepHolder {
 public:
  void hold(const StepRange& steps) override { held += steps.num_steps; }
  void let_go(const StepRange& steps) override { held -= steps.num_steps; }
  uint64_t num_touched() const override { return 0; }
  uint64_t held = 0;
};

// The log describes exactly the items of the table, so it never removes a key that it did not
// insert.
void check_log(const Log& log, const Table& table, const StepCounter& counter) {
  TENGEN_CHECK(table.num_steps() == counter.held);
  State state;
  state.apply(log.pending());
  const SavedTable& saved = state.tables.at(0);
  const auto is_there = [](const SavedItem& item) { return item.key >= 0; };
  TENGEN_CHECK(static_cast<uint64_t>(std::count_if(saved.items.begin(), saved.items.end(),
                                                   is_there)) == table.size());
  TENGEN_CHECK(saved.num_inserts == table.limiter().num_inserts());
}

// Inserts, samples and removals that run out of memory, in any of their calls of `new`, change
// nothing, and succeed when they are repeated.
void check_shortages(const std::string& kind, const std::string& remover, uint64_t max_items) {
  StepCounter counter;
  Log log;
  log.add(event::TableAdded{0, 0});
  TableConfig config;
  config.name = "t";
  config.sampler = selector_of(kind);
  config.remover = selector_of(remover);
  config.max_items = max_items;
  Table table(config, 0, &counter, &log, 0);
  int64_t num_failed = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const NewItem item{{i, 0, 1}, 1.0 + static_cast<double>(i % 7)};
    num_failed += fail_each_new([&] { table.insert(item); },
                                [&] {
                                  check_log(log, table, counter);
                                  TENGEN_CHECK(table.limiter().num_inserts() == i);
                                });
    TENGEN_CHECK(table.size() == std::min(i + 1, max_items));
    TENGEN_CHECK(table.num_eligible() == table.size());
    check_log(log, table, counter);
  }
  TENGEN_CHECK(num_failed > 5);
  std::vector<Sample> samples(100);
  fail_each_new([&] { table.sample(samples); },
                [&] { TENGEN_CHECK(table.limiter().num_samples() == 0); });
  TENGEN_CHECK(table.limiter().num_samples() == samples.size());
  // give_back() needs no memory, because a call that failed half-way would return items twice.
  std::vector<Sample> others(table.size());
  table.sample(others);
  std::vector<int64_t> keys;
  for (const Sample& sample : samples) keys.push_back(sample.key);
  TENGEN_CHECK(fail_each_new([&] { table.give_back(keys); }, [] {}) == 0);
  TENGEN_CHECK(table.limiter().num_samples() == others.size());
  while (table.size() > 0) {
    fail_each_new([&] { table.remove_one(); }, [&] { check_log(log, table, counter); });
  }
  check_log(log, table, counter);
}

}  // namespace

int main() {
  for (const char* kind : {"uniform", "prioritized", "fifo"}) {
    for (const char* remover : {"fifo", "prioritized"}) {
      check_shortages(kind, remover, 1000);
      check_shortages(kind, remover, 20);
    }
  }
  return 0;
}
