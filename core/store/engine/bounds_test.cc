// The engine's bounds: no client can fill it, and a state can hold everything that it accepts.

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

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

// Writer names have a maximum length, and names of writers that left long ago are forgotten.
void check_names() {
  Store store(100);
  Engine& engine = store.engine;
  const uint32_t table = engine.add_table(queue_of("queue"), 0);
  const SessionId session = engine.begin_session();
  TENGEN_CHECK(throws([&] { engine.open_writer(session, std::string(257, 'x'), 0); }));
  const auto write = [&](const std::string& name) {
    const Engine::OpenedWriter opened = engine.open_writer(session, name, 0);
    engine.append(opened.writer, *engine.grant(opened.writer));
    const Insert insert{table, opened.next_sequence, 0, 1, 1.0};
    TENGEN_CHECK(engine.insert(opened.writer, insert) == InsertResult::kInserted);
    engine.table(table).remove_one();
    return opened;
  };
  const uint32_t open = write("open").writer;
  for (uint64_t i = 0; i < kMaxNames + 10; ++i) {
    engine.close_writer(write("left " + std::to_string(i)).writer);
    // A writer that returns now and then is not among those that left long ago.
    if (i % 1000 == 0) engine.close_writer(write("again").writer);
    // The name of a writer that inserted nothing is not stored.
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

// Whatever a state would reject is rejected when it is added.
void check_bounds() {
  Memory memory("", uint64_t{1} << 35);  // the test uses none of it
  Engine engine(&memory, 0);
  const auto schema = [](uint32_t width) { return Schema({{"x", "u1", {width}, 0}}, 1); };
  for (uint32_t i = 0; i < 1024; ++i) engine.add_pool(schema(i + 1));
  TENGEN_CHECK(throws([&] { engine.add_pool(schema(1025)); }));
  TENGEN_CHECK(throws([&] { Schema({{"x", "u1", {1 << 30}, 0}}, 3); }));

  Store store(100);
  const uint32_t table = store.engine.add_table(queue_of("queue"), 0);
  constexpr uint32_t kMiB = 1 << 20;
  store.engine.check_batch(table, kMiB / (kStepBytes + 44));
  TENGEN_CHECK(throws([&] { store.engine.check_batch(table, 0); }));
  TENGEN_CHECK(throws([&] { store.engine.check_batch(table, kMiB / (kStepBytes + 44) + 1); }));
  TENGEN_CHECK(throws([&] { engine.check_batch(engine.add_table(queue_of("a"), 0), 65537); }));
}

// All samplers share one bound on the lists of their loans: 24 bytes per sample and 256 per batch.
// A sampler that starts late still gets loans, and returned loans free space.
void check_loans_of_all_samplers() {
  Store store(100);
  Engine& engine = store.engine;
  TableConfig config;
  config.name = "t";
  const uint32_t table = engine.add_table(config, 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  engine.append(writer, *engine.grant(writer));
  TENGEN_CHECK(engine.insert(writer, {table, 0, 0, 1, 1.0}) == InsertResult::kInserted);
  constexpr uint32_t kNumSamples = 1000;
  constexpr uint64_t kMost = (1 << 20) / (256 + 24 * kNumSamples);
  std::vector<Loan> loans;
  const auto draw_all = [&] {
    const SessionId sampler = engine.begin_session();
    uint64_t count = 0;
    for (; engine.may_lend(table, kNumSamples, count); ++count) {
      TENGEN_CHECK(engine.sample(sampler, table, kNumSamples, &loans.emplace_back()));
      loans.back().session = sampler;
    }
    return count;
  };
  TENGEN_CHECK(draw_all() == kMost / 2);
  TENGEN_CHECK(draw_all() > 1 && draw_all() > 1);
  for (int i = 0; i < 100; ++i) draw_all();
  TENGEN_CHECK(loans.size() == kMost && draw_all() == 0);
  for (const Loan& loan : loans) engine.give_back(loan.session, loan.lease);
  // For batches of one sample, the table's limit of 1,024 loans applies.
  TENGEN_CHECK(engine.may_lend(table, 1, 1023) && !engine.may_lend(table, 1, 1024));
}

// A state with too many names is restored completely; the excess names are forgotten gradually.
void check_names_of_older_states() {
  Log log;
  constexpr uint64_t kTooMany = 5000;
  State state;
  for (uint64_t i = 0; i < kMaxNames + kTooMany; ++i) {
    state.next_sequences["left " + std::to_string(i)] = 1;
  }
  Memory memory("", 100 * kStepBytes);
  Engine engine(&memory, 0, &log);
  engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1));
  state.apply(log.pending());
  engine.restore(state);
  log.clear();
  const SessionId session = engine.begin_session();
  const auto num_forgotten = [&] {
    engine.close_writer(engine.open_writer(session, "left 0", 0).writer);
    uint64_t count = 0;
    for (auto records = log.pending(); !records.empty();) {
      Log::Head head;
      std::memcpy(&head, records.data(), sizeof head);
      count += head.kind == event::kKindOf<event::NameForgotten> ? 1u : 0u;
      records = records.subspan(head.num_bytes);
    }
    log.clear();
    return count;
  };
  for (uint64_t i = 0; i < kTooMany / kMaxAtOnce; ++i) TENGEN_CHECK(num_forgotten() == kMaxAtOnce);
  TENGEN_CHECK(num_forgotten() == 0);
}

// Under extreme rate limits a reported wait is a bounded count, and unlimited inserts never wait.
void check_extreme_limits() {
  for (const double each : {1e308, 1e-308}) {
    Memory memory("", 1 << 16);
    Engine engine(&memory, 0);
    engine.add_pool(Schema({{"x", "u1", {}, 0}}, 1));
    TableConfig config;
    config.name = "free";
    config.limits.samples_per_insert = each;
    const uint32_t free = engine.add_table(config, 0);
    config.name = "bound";
    config.limits.max_cursor = std::max(1.0, each);
    config.limits.min_cursor = 0.0;
    const uint32_t bound = engine.add_table(config, 0);
    const uint32_t writer = engine.open_writer(engine.begin_session(), "a", 0).writer;
    engine.append(writer, *engine.grant(writer));
    for (uint64_t i = 0; i < 4; ++i) {
      TENGEN_CHECK(engine.insert(writer, {free, i, 0, 1, 1.0}) == InsertResult::kInserted);
    }
    TENGEN_CHECK(engine.insert_waits(free).empty());
    for (uint64_t i = 4; engine.table(bound).inserts_allowed(1) == 1 && i < 8; ++i) {
      engine.insert(writer, {bound, i, 0, 1, 1.0});
    }
    const std::string much = "more than 1000000000000000";
    if (each > 1.0) {
      TENGEN_CHECK(engine.insert_waits(bound) ==
                   "insert waits: " + much + " samples must be drawn first");
    } else {
      TENGEN_CHECK(engine.sample_waits(bound, 1) ==
                   "sample waits: " + much + " inserts must be made first");
    }
  }
}

// A session with many loans returns them in steps, and the log records each step.
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
  // Other sessions have their turn between the steps.
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
  // Twenty batches were returned; ten were used, and their items have been removed.
  TENGEN_CHECK(engine.table(table).size() == 2000);
  TENGEN_CHECK(engine.sample(writing, table, 2000, &loan));
}

// If the chunk that a writer needs has many items, they are removed in several steps.
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
  // The last call removed 1,000 items. The next call removes as many, and the one after succeeds.
  const uint64_t size = step - 1000;
  TENGEN_CHECK(engine.is_making_room(writer) && engine.table(table).size() == size);
  TENGEN_CHECK(!engine.grant(writer) && engine.is_making_room(writer));
  TENGEN_CHECK(engine.grant(writer) && !engine.is_making_room(writer));
  TENGEN_CHECK(engine.table(table).size() == step - kSteps && engine.num_removed() == kSteps);
}

// Each schema has its own part of memory, however many steps another schema stored first. Items
// that can never fit into their part are rejected.
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
  check_names();
  check_bounds();
  check_loans_of_all_samplers();
  check_names_of_older_states();
  check_extreme_limits();
  return 0;
}
