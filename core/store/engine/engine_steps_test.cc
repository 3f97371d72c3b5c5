#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/testing.h"
#include "store/engine/engine.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// A session that has much gives it back in steps, of which each is told to the log.
void check_long_end() {
  Log log;
  Memory memory("", 1 << 20);
  Engine engine(&memory, 7, &log);
  engine.add_pool(Schema({{"x", "u1", {64}, 0}}, 1));
  TableConfig config;
  config.name = "t";
  config.sampler = selector_of("fifo");
  config.max_times_sampled = 1;
  const uint32_t table = engine.add_table(config, 0);
  const SessionId writing = engine.begin_session();
  const uint32_t writer = engine.open_writer(writing, "a", 0).writer;
  for (uint64_t i = 0; i < 3000; ++i) {
    engine.append(writer, *engine.grant(writer));
    engine.insert(writer, {table, i, i, 1, 1.0});
  }
  const SessionId ending = engine.begin_session(), other = engine.begin_session();
  std::vector<Loan> loans(30);
  for (size_t i = 0; i < loans.size(); ++i) {
    TENGEN_CHECK(engine.sample(ending, table, 100, &loans[i]));
    if (i % 3 > 1) engine.ack(ending, loans[i].lease, {});
  }
  TENGEN_CHECK(engine.num_loans(ending) == 20 && engine.num_loans(other) == 0);
  Loan loan;
  TENGEN_CHECK(!engine.sample(other, table, 1, &loan));
  TENGEN_CHECK(engine.end_session(ending) && engine.num_loans(ending) == 10);
  // Others have their turn.
  TENGEN_CHECK(engine.sample(other, table, 1000, &loan) && !engine.sample(other, table, 1, &loan));
  State state;
  state.apply(log.pending());
  TENGEN_CHECK(state.loans.size() == 11);
  TENGEN_CHECK(!engine.end_session(ending));
  TENGEN_CHECK(engine.num_loans(ending) == 0 && engine.num_loans(other) == 1);
  State after;
  after.apply(log.pending());
  TENGEN_CHECK(after.loans.size() == 1 && after.sessions.size() == 2);
  engine.end_session(other);
  engine.close_writer(writer);
  // Twenty batches were given back; ten were used, and their items are gone.
  TENGEN_CHECK(engine.table(table).size() == 2000);
  TENGEN_CHECK(engine.sample(writing, table, 2000, &loan));
}

// A writer that needs room where a chunk has many items gets it in steps.
void check_long_grant() {
  Memory memory("", 1 << 20);
  Engine engine(&memory, 7);
  constexpr uint32_t kSteps = 2500;
  engine.add_pool(Schema({{"x", "u1", {8}, 0}}, kSteps));
  TableConfig config;
  config.name = "t";
  const uint32_t table = engine.add_table(config, 0);
  const uint32_t writer = engine.open_writer(engine.begin_session(), "a", 0).writer;
  uint64_t step = 0;
  while (const std::optional<uint32_t> slot = engine.grant(writer)) {
    if (engine.num_removed() > 0) break;
    engine.append(writer, *slot);
    for (const uint64_t end = step + kSteps; step < end; ++step) {
      engine.insert(writer, {table, step, step, 1, 1.0});
    }
    engine.release_before(writer, step);
  }
  // The last call removed some; each that follows does as much, and the third one has the chunk.
  const uint64_t size = step - 1000;
  TENGEN_CHECK(engine.is_making_room(writer) && engine.table(table).size() == size);
  TENGEN_CHECK(!engine.grant(writer) && engine.is_making_room(writer));
  TENGEN_CHECK(engine.grant(writer) && !engine.is_making_room(writer));
  TENGEN_CHECK(engine.table(table).size() == step - kSteps && engine.num_removed() == kSteps);
}

// Steps of other columns have their part however many came first; what can never lie in it is
// refused.
void check_parts() {
  constexpr uint64_t kBytes = 64;
  Memory memory("", 200 * kBytes);
  Engine engine(&memory, 0);
  for (int i = 0; i < 2; ++i) {
    engine.add_pool(Schema({{"x", "u1", {kBytes}, 0}}, 1));
    TableConfig config;
    config.name = std::to_string(i);
    engine.add_table(config, static_cast<uint32_t>(i));
  }
  const SessionId session = engine.begin_session();
  for (uint32_t table = 0; table < 2; ++table) {
    const uint32_t writer = engine.open_writer(session, std::to_string(table), table).writer;
    for (uint64_t i = 0; i < 300; ++i) {
      const std::optional<uint32_t> slot = engine.grant(writer);
      TENGEN_CHECK(slot.has_value());
      engine.append(writer, *slot);
      engine.insert(writer, {table, i, i, 1, 1.0});
      engine.release_before(writer, i + 1);
    }
  }
  for (uint32_t table = 0; table < 2; ++table) {
    TENGEN_CHECK(engine.table(table).size() >= 95 && engine.table(table).size() <= 100);
  }
  TableConfig too_long;
  too_long.name = "long";
  too_long.num_steps = 101;
  TENGEN_CHECK(throws([&] { engine.add_table(too_long, 0); }));
  Memory little("", 10 * kBytes);
  Engine many(&little, 0);
  const auto add = [&] { many.add_pool(Schema({{"x", "u1", {kBytes}, 0}}, 1)); };
  for (int i = 0; i < 10; ++i) add();
  TENGEN_CHECK(throws(add));
}

}  // namespace

int main() {
  check_long_end();
  check_long_grant();
  check_parts();
  return 0;
}
