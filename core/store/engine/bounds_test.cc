// What an engine bounds, so that no client fills it and whatever it accepts a state may hold.

#include <string>

#include "base/testing.h"
#include "store/engine/engine.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

constexpr uint64_t kStepBytes = 64;

TableConfig queue_of(const std::string& name) {
  TableConfig config;
  config.name = name;
  config.sampler = selector_of("fifo");
  return config;
}

// A store of one pool whose chunks hold one step.
struct Store {
  explicit Store(uint64_t budget_steps)
      : memory("", budget_steps * kStepBytes), engine(&memory, 0) {
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1));
  }
  Memory memory;
  Engine engine;
};

// Names are short, and those that left long ago are forgotten; not those that are open.
void check_names() {
  Store store(100);
  Engine& engine = store.engine;
  const uint32_t table = engine.add_table(queue_of("queue"), 0);
  const SessionId session = engine.begin_session();
  TENGEN_CHECK(throws([&] { engine.open_writer(session, std::string(257, 'x'), 0); }));
  const auto write = [&](const std::string& name) {
    const Engine::OpenedWriter opened = engine.open_writer(session, name, 0);
    engine.append(opened.writer, *engine.grant(opened.writer));
    const Insert insert{table, opened.next_sequence, 0, 1, 1.0, 0};
    TENGEN_CHECK(engine.insert(opened.writer, insert) == InsertResult::kInserted);
    engine.table(table).remove_one();
    return opened;
  };
  const uint32_t open = write("open").writer;
  for (uint64_t i = 0; i < kMaxNames + 10; ++i) {
    engine.close_writer(write("left " + std::to_string(i)).writer);
    // One that comes back now and then is not among those that left long ago.
    if (i % 1000 == 0) engine.close_writer(write("again").writer);
    // One that inserted nothing has nothing to be known.
    engine.close_writer(engine.open_writer(session, "idle " + std::to_string(i), 0).writer);
  }
  const auto next = [&](const std::string& name) {
    return engine.open_writer(session, name, 0).next_sequence;
  };
  TENGEN_CHECK(next("left 0") == 0 && next("left 10") == 0 && next("left 11") == 1);
  TENGEN_CHECK(next("again") == kMaxNames / 1000 + 1);
  engine.close_writer(open);
  TENGEN_CHECK(next("open") == 1);
}

// What a state would refuse is refused when it is added.
void check_bounds() {
  Memory memory("", uint64_t{1} << 35);  // of which nothing is used
  Engine engine(&memory, 0);
  const auto schema = [](uint32_t width) { return Schema({{"x", "u1", {width}, 0}}, 1); };
  for (uint32_t i = 0; i < 1024; ++i) engine.add_pool(schema(i + 1));
  TENGEN_CHECK(throws([&] { engine.add_pool(schema(1025)); }));
  TENGEN_CHECK(throws([&] { Schema({{"x", "u1", {1 << 30}, 0}}, 3); }));

  Store store(100);
  const uint32_t table = store.engine.add_table(queue_of("queue"), 0);
  constexpr uint32_t kMiB = 1 << 20;
  store.engine.expect(table, kMiB / (kStepBytes + 44));
  TENGEN_CHECK(throws([&] { store.engine.expect(table, 0); }));
  TENGEN_CHECK(throws([&] { store.engine.expect(table, kMiB / (kStepBytes + 44) + 1); }));
  TENGEN_CHECK(throws([&] { engine.expect(engine.add_table(queue_of("a"), 0), 65537); }));
  // So many samples on loan are listed in a MiB, 24 bytes each.
  TENGEN_CHECK(store.engine.max_loans(table, 10) == 1024);
  TENGEN_CHECK(store.engine.max_loans(table, 100) == kMiB / (100 * 24));
  TENGEN_CHECK(store.engine.max_loans(table, 65536) == 1);
}

}  // namespace

int main() {
  check_names();
  check_bounds();
  return 0;
}
