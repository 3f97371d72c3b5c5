#include "store/engine/engine.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

constexpr uint64_t kStepBytes = 64;

TableConfig queue_of(const std::string& name, uint32_t num_steps = 1) {
  TableConfig config;
  config.name = name;
  config.sampler = selector_of("fifo");
  config.limits = {1.0, 1, 0.0, 1e9};
  config.max_times_sampled = 1;
  config.num_steps = num_steps;
  return config;
}

// A store of one pool whose chunks hold `length` steps.
struct Store {
  explicit Store(uint64_t budget_steps, uint32_t length = 1)
      : memory("", budget_steps * kStepBytes), engine(&memory, 0) {
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, length));
  }
  Memory memory;
  Engine engine;
};

// Writes a chunk of one step, and inserts it as an item; `sequence` numbers both.
InsertResult put(Engine& engine, uint32_t writer, uint32_t table, uint64_t sequence) {
  const std::optional<uint32_t> slot = engine.grant(writer);
  TENGEN_CHECK(slot.has_value());
  engine.append(writer, *slot);
  return engine.insert(writer, {table, sequence, sequence, 1, 1.0});
}

void check_writers() {
  Store store(100);
  Engine& engine = store.engine;
  const uint32_t table = engine.add_table(queue_of("replay"), 0);
  TENGEN_CHECK(engine.find_table("replay") == table && !engine.find_table("reply"));
  TENGEN_CHECK(throws([&] { engine.add_table(queue_of("replay"), 0); }));
  TENGEN_CHECK(throws([&] { engine.add_table(queue_of(""), 0); }));
  const SessionId first = engine.begin_session();
  const Engine::OpenedWriter a = engine.open_writer(first, "a", 0);
  TENGEN_CHECK(a.next_sequence == 0);
  TENGEN_CHECK(throws([&] { engine.open_writer(engine.begin_session(), "a", 0); }));
  TENGEN_CHECK(throws([&] { engine.open_writer(first, "", 0); }));
  TENGEN_CHECK(throws([&] { engine.insert(a.writer, {table, UINT64_MAX, 0, 1, 1.0}); }));
  for (uint64_t i = 0; i < 5; ++i) {
    TENGEN_CHECK(put(engine, a.writer, table, i) == InsertResult::kInserted);
  }
  // Repeating an insert has no effect.
  TENGEN_CHECK(engine.insert(a.writer, {table, 3, 3, 1, 1.0}) == InsertResult::kKnown);
  TENGEN_CHECK(throws([&] { engine.insert(a.writer, {table, 5, 5, 1, 1.0}); }));  // no such step
  TENGEN_CHECK(throws([&] { engine.insert(a.writer, {table + 1, 5, 4, 1, 1.0}); }));
  // A writer may skip sequence numbers.
  TENGEN_CHECK(engine.insert(a.writer, {table, 8, 4, 1, 1.0}) == InsertResult::kInserted);
  TENGEN_CHECK(engine.insert(a.writer, {table, 8, 4, 1, 1.0}) == InsertResult::kKnown);
  TENGEN_CHECK(throws([&] { engine.append(a.writer, 99); }));
  const std::optional<uint32_t> slot = engine.grant(a.writer);
  TENGEN_CHECK(slot.has_value());
  engine.append(a.writer, *slot);
  TENGEN_CHECK(throws([&] { engine.append(a.writer, *slot); }));  // the slot is full
  engine.end_session(first);
  TENGEN_CHECK(throws([&] { engine.grant(a.writer); }));
  TENGEN_CHECK(throws([&] { engine.grant(a.writer + 1); }));
  // The next client with that name continues after the last insert of the killed client.
  const SessionId second = engine.begin_session();
  const Engine::OpenedWriter again = engine.open_writer(second, "a", 0);
  TENGEN_CHECK(again.next_sequence == 9 && again.writer == a.writer);
  TENGEN_CHECK(engine.table(table).size() == 6);
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 5);
}

// Slots that a writer was granted and did not fill are freed when its session ends.
void check_grants() {
  Store store(64);
  Engine& engine = store.engine;
  engine.add_table(queue_of("empty"), 0);  // has no items to remove
  uint64_t num_granted[2] = {0, 0};
  for (uint64_t& count : num_granted) {
    const SessionId session = engine.begin_session();
    const uint32_t writer = engine.open_writer(session, "a", 0).writer;
    while (engine.grant(writer)) ++count;
    engine.end_session(session);
  }
  TENGEN_CHECK(num_granted[0] == engine.pool(0).slots().num_slots() &&
               num_granted[1] == num_granted[0]);
}

// A refused call changes nothing and reports the reason for the wait.
void check_waits() {
  Store store(100);
  Engine& engine = store.engine;
  TableConfig config;
  config.name = "replay";
  config.limits = {2.5, 2, 1.0, 8.5};
  const uint32_t table = engine.add_table(config, 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  put(engine, writer, table, 0);
  TENGEN_CHECK(engine.sample_waits(table, 1) == "sample waits: 1 items must be inserted first");
  put(engine, writer, table, 1);
  TENGEN_CHECK(engine.sample_waits(table, 4).empty() && engine.insert_waits(table).empty());
  put(engine, writer, table, 2);  // the cursor is 7.5
  TENGEN_CHECK(engine.sample_waits(table, 7) == "sample waits: 1 inserts must be made first");
  TENGEN_CHECK(engine.sample_waits(table, 8) ==
               "sample waits: limits never allow more than 7 samples at once; widen them, or "
               "request fewer");
  TENGEN_CHECK(put(engine, writer, table, 3) == InsertResult::kBlocked);
  TENGEN_CHECK(engine.insert_waits(table) == "insert waits: 2 samples must be drawn first");
  Loan loan;
  TENGEN_CHECK(!engine.sample(session, table, 7, &loan) && loan.samples.empty());
  TENGEN_CHECK(engine.sample(session, table, 1, &loan));
  TENGEN_CHECK(engine.insert_waits(table) == "insert waits: 1 samples must be drawn first");
  TENGEN_CHECK(engine.sample(session, table, 1, &loan));
  TENGEN_CHECK(engine.insert_waits(table).empty());
  const Insert blocked{table, 3, 3, 1, 1.0};
  TENGEN_CHECK(engine.insert(writer, blocked) == InsertResult::kInserted);

  config = queue_of("queue");
  config.limits = RateLimits();
  const uint32_t queue = engine.add_table(config, 0);
  TENGEN_CHECK(engine.insert(writer, {queue, 4, 3, 1, 1.0}) == InsertResult::kInserted);
  TENGEN_CHECK(engine.sample(session, queue, 1, &loan));
  TENGEN_CHECK(engine.sample_waits(queue, 1) ==
               "sample waits: every item has been used as often as it may be, or is on loan");
}

void check_loans() {
  Store store(100);
  Engine& engine = store.engine;
  const uint32_t table = engine.add_table(queue_of("queue"), 0);
  const SessionId actor = engine.begin_session();
  const uint32_t writer = engine.open_writer(actor, "a", 0).writer;
  for (uint64_t i = 0; i < 6; ++i) put(engine, writer, table, i);
  engine.release_before(writer, 6);
  const SessionId one = engine.begin_session();
  const SessionId two = engine.begin_session();
  Loan loan;
  TENGEN_CHECK(engine.sample(one, table, 2, &loan));
  const std::vector<Sample> lost = loan.samples;
  TENGEN_CHECK(loan.table_size == 6 && loan.pieces.size() == 2);
  TENGEN_CHECK(engine.sample(two, table, 3, &loan));
  TENGEN_CHECK(!engine.sample(two, table, 2, &loan));
  TENGEN_CHECK(loan.samples.size() == 3 && loan.pieces.size() == 3);
  TENGEN_CHECK(engine.sample_waits(table, 2) == "sample waits: 1 inserts must be made first");
  TENGEN_CHECK(throws([&] { engine.ack(one, loan.lease, {}); }));  // a loan of another session
  TENGEN_CHECK(throws([&] { engine.ack(two, loan.lease, std::vector(2, 1.0)); }));
  TENGEN_CHECK(throws([&] { engine.ack(two, loan.lease, std::vector(4, 1.0)); }));
  engine.ack(two, loan.lease, {});
  TENGEN_CHECK(throws([&] { engine.ack(two, loan.lease, {}); }));
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 3);
  // If a consumer dies, its uses are not lost, and its items are sampled first again.
  engine.end_session(one);
  TENGEN_CHECK(engine.sample(two, table, 3, &loan));
  TENGEN_CHECK(loan.samples[0].key == lost[0].key && loan.samples[1].key == lost[1].key);
  engine.ack(two, loan.lease, {});
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 0 && engine.table(table).size() == 0);
}

// An insert may replace the only other item that holds the same steps.
void check_room_for_the_same_steps() {
  Store store(100);
  Engine& engine = store.engine;
  TableConfig config;
  config.name = "one";
  config.max_items = 1;
  const uint32_t table = engine.add_table(config, 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  put(engine, writer, table, 0);
  engine.append(writer, *engine.grant(writer));  // so that the stream continues after this chunk
  engine.release_before(writer, 100);
  TENGEN_CHECK(engine.insert(writer, {table, 1, 0, 1, 1.0}) == InsertResult::kInserted);
  Loan loan;
  TENGEN_CHECK(engine.table(table).size() == 1 && engine.sample(session, table, 1, &loan));
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 1 && loan.pieces.size() == 1);
}

// Priorities given with an insert or an acknowledgement reach the table.
void check_priorities() {
  Store store(100);
  Engine& engine = store.engine;
  TableConfig config;
  config.name = "prioritized";
  config.sampler = selector_of("prioritized");
  config.sampler.exponent = 1.0;
  const uint32_t table = engine.add_table(config, 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  engine.append(writer, *engine.grant(writer));
  engine.insert(writer, {table, 0, 0, 1, 1.0});
  engine.insert(writer, {table, 1, 0, 1, 3.0});
  Loan loan;
  TENGEN_CHECK(engine.sample(session, table, 1, &loan));
  const Sample drawn = loan.samples[0];
  TENGEN_CHECK(drawn.probability == 0.25 || drawn.probability == 0.75);
  engine.ack(session, loan.lease, std::vector{0.0});
  TENGEN_CHECK(engine.sample(session, table, 8, &loan));
  for (const Sample& sample : loan.samples) {
    TENGEN_CHECK(sample.key != drawn.key && sample.probability == 1.0);
  }
}

// Tables of one store sample independently of each other, and the seed determines the samples.
void check_seeds() {
  const auto draw = [](uint64_t seed, uint32_t table) {
    Memory memory("", 100 * kStepBytes);
    Engine engine(&memory, seed);
    const SessionId session = engine.begin_session();
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 20));
    const uint32_t writer = engine.open_writer(session, "a", 0).writer;
    engine.append(writer, *engine.grant(writer));
    for (uint64_t sequence = 0; sequence < 40; ++sequence) {
      TableConfig config;
      config.name = std::to_string(sequence % 2);
      if (sequence < 2) engine.add_table(config, 0);
      const uint32_t number = static_cast<uint32_t>(sequence % 2);
      engine.insert(writer, {number, sequence, sequence / 2, 1, 1.0});
    }
    Loan loan;
    TENGEN_CHECK(engine.sample(session, table, 20, &loan));
    std::vector<uint64_t> steps;
    for (const Sample& sample : loan.samples) steps.push_back(sample.steps.first);
    return steps;
  };
  TENGEN_CHECK(draw(5, 0) == draw(5, 0));
  TENGEN_CHECK(draw(5, 0) != draw(5, 1) && draw(5, 0) != draw(7, 0));
}

// Items of several tables share steps; overlapping items share chunks.
void check_sharing() {
  Store store(1000, 4);
  Engine& engine = store.engine;
  const uint32_t slices = engine.add_table(queue_of("slices", 6), 0);
  const uint32_t singles = engine.add_table(queue_of("singles"), 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  for (int i = 0; i < 3; ++i) engine.append(writer, *engine.grant(writer));
  uint64_t sequence = 0;
  for (const uint64_t first : {0ull, 3ull, 6ull}) {
    engine.insert(writer, {slices, sequence++, first, 6, 1.0});
    engine.insert(writer, {singles, sequence++, first, 1, 1.0});
  }
  TENGEN_CHECK(throws([&] { engine.insert(writer, {slices, sequence, 7, 6, 1.0}); }));
  engine.close_writer(writer);
  Loan loan;
  TENGEN_CHECK(engine.sample(session, slices, 2, &loan));
  TENGEN_CHECK(loan.pieces.size() == 5);  // steps 0 to 5 lie in two chunks, 3 to 8 in three
  engine.ack(session, loan.lease, {});
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 3);
  TENGEN_CHECK(engine.sample(session, slices, 1, &loan));
  engine.ack(session, loan.lease, {});
  TENGEN_CHECK(engine.pool(0).streams().num_chunks() == 2);  // held by the singles 0, 3 and 6
  TENGEN_CHECK(engine.sample(session, singles, 2, &loan));
  engine.ack(session, loan.lease, {});
  TENGEN_CHECK(engine.table(singles).size() == 1 && engine.pool(0).streams().num_chunks() == 1);
}

// If memory is full, a writer still gets another chunk, however many items a chunk has.
void check_long_chunks() {
  constexpr uint32_t kLength = 500;
  Store store(10 * kLength, kLength);
  Engine& engine = store.engine;
  const uint32_t table = engine.add_table(queue_of("replay"), 0);
  const uint32_t writer = engine.open_writer(engine.begin_session(), "a", 0).writer;
  for (uint64_t i = 0; i < 40 * kLength; ++i) {
    if (i % kLength == 0) {
      const std::optional<uint32_t> slot = engine.grant(writer);
      TENGEN_CHECK(slot.has_value());
      engine.append(writer, *slot);
    }
    TENGEN_CHECK(engine.insert(writer, {table, i, i, 1, 1.0}) == InsertResult::kInserted);
    engine.release_before(writer, i + 1);
  }
  TENGEN_CHECK(engine.table(table).size() >= 8 * kLength);
}

// If memory is full, the removers free space, but steps on loan are never overwritten.
void check_memory() {
  Store store(200);
  Engine& engine = store.engine;
  TableConfig config;
  config.name = "replay";
  config.sampler = selector_of("fifo");
  config.max_times_sampled = 1;
  const uint32_t table = engine.add_table(config, 0);
  const SessionId session = engine.begin_session();
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  for (uint64_t i = 0; i < 500; ++i) {
    put(engine, writer, table, i);
    engine.release_before(writer, i + 1);
  }
  const uint64_t size = engine.table(table).size();
  TENGEN_CHECK(size <= 200 && size >= 185);
  // All memory is on loan, so no slot can be freed, and most items stay.
  Loan loan;
  TENGEN_CHECK(engine.sample(session, table, static_cast<uint32_t>(size), &loan));
  while (engine.grant(writer).has_value()) {
  }
  TENGEN_CHECK(engine.table(table).size() > size / 2);
  std::set<uint32_t> slots;
  for (const Piece& piece : loan.pieces) {
    TENGEN_CHECK(piece.slot < engine.pool(0).slots().num_slots() && piece.num_steps == 1);
    TENGEN_CHECK(slots.insert(piece.slot).second);
  }
  engine.give_back(session, loan.lease);
  TENGEN_CHECK(engine.grant(writer).has_value());
}

// To free a slot, the table with the most steps in the pool gives up as many items as needed.
void check_room() {
  Store store(128, 2);
  Engine& engine = store.engine;
  engine.add_pool(Schema({{"y", "u1", {kStepBytes}, 0}}, 2));
  const uint32_t singles = engine.add_table(queue_of("singles"), 0);
  const uint32_t slices = engine.add_table(queue_of("slices", 8), 0);
  const uint32_t others = engine.add_table(queue_of("others"), 1);
  const SessionId session = engine.begin_session();
  const uint32_t other = engine.open_writer(session, "b", 1).writer;
  engine.append(other, *engine.grant(other));
  TENGEN_CHECK(throws([&] { engine.insert(other, {singles, 0, 0, 1, 1.0}); }));
  engine.insert(other, {others, 0, 0, 1, 1.0});
  const uint32_t writer = engine.open_writer(session, "a", 0).writer;
  for (int i = 0; i < 20; ++i) engine.append(writer, *engine.grant(writer));
  uint64_t sequence = 0;
  for (uint64_t step = 0; step < 16; ++step) {
    engine.insert(writer, {singles, sequence++, step, 1, 1.0});
  }
  for (uint64_t step = 16; step < 40; step += 8) {
    engine.insert(writer, {slices, sequence++, step, 8, 1.0});
  }
  engine.release_before(writer, 40);
  while (engine.table(slices).size() == 3) TENGEN_CHECK(engine.grant(writer).has_value());
  TENGEN_CHECK(engine.table(singles).size() == 16);
  // Finally the writer holds all memory of its pool, and the other pool is unaffected.
  while (engine.grant(writer)) {
  }
  TENGEN_CHECK(engine.table(singles).size() == 0 && engine.table(slices).size() == 0);
  TENGEN_CHECK(engine.table(others).size() == 1);
}

// Random clients connect, write, sample, acknowledge and die. No slot is lost or used twice, and
// every item of the queue is used exactly once in spite of deaths.
void check_random(uint64_t seed) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  Store store(256);
  Engine& engine = store.engine;
  TableConfig config = queue_of("queue");
  config.limits.max_cursor = 100.0;
  const uint32_t queue = engine.add_table(config, 0);
  struct Client {
    std::string name;
    uint32_t writer;
    uint64_t sequence;
    uint64_t step = 0;
    std::vector<Loan> loans;
  };
  std::map<SessionId, Client> clients;
  std::set<std::string> names;
  uint64_t num_inserted = 0;
  std::set<int64_t> used;
  for (int round = 0; round < 3000; ++round) {
    const uint32_t action = rng.below(10);
    if (clients.size() < 4 && (clients.empty() || action == 0)) {
      const std::string name = "writer-" + std::to_string(rng.below(6));
      if (names.count(name) != 0) continue;
      const SessionId session = engine.begin_session();
      const Engine::OpenedWriter opened = engine.open_writer(session, name, 0);
      clients[session] = {name, opened.writer, opened.next_sequence, 0, {}};
      names.insert(name);
      continue;
    }
    auto it = clients.begin();
    std::advance(it, rng.below(static_cast<uint32_t>(clients.size())));
    auto& [session, client] = *it;
    if (action == 1) {
      engine.end_session(session);
      names.erase(client.name);
      clients.erase(it);
    } else if (action <= 5) {
      if (!engine.insert_waits(queue).empty()) continue;
      const std::optional<uint32_t> slot = engine.grant(client.writer);
      TENGEN_CHECK(slot.has_value());
      if (rng.below(20) == 0) continue;  // granted but never filled
      engine.append(client.writer, *slot);
      const Insert insert{queue, client.sequence++, client.step++, 1, 1.0};
      TENGEN_CHECK(engine.insert(client.writer, insert) == InsertResult::kInserted);
      TENGEN_CHECK(engine.insert(client.writer, insert) == InsertResult::kKnown);
      engine.release_before(client.writer, client.step);
      ++num_inserted;
    } else if (action <= 7) {
      Loan loan;
      if (engine.sample(session, queue, 1 + rng.below(4), &loan)) client.loans.push_back(loan);
    } else if (!client.loans.empty()) {
      const Loan loan = client.loans.back();
      client.loans.pop_back();
      if (action == 8) {
        engine.give_back(session, loan.lease);
        continue;
      }
      engine.ack(session, loan.lease, {});
      for (const Sample& sample : loan.samples) TENGEN_CHECK(used.insert(sample.key).second);
    }
    TENGEN_CHECK(used.size() + engine.table(queue).size() == num_inserted);
    TENGEN_CHECK(engine.pool(0).streams().num_chunks() == engine.table(queue).size());
  }
  TENGEN_CHECK(used.size() > 100);
}

}  // namespace

int main() {
  check_writers();
  check_grants();
  check_waits();
  check_loans();
  check_room_for_the_same_steps();
  check_priorities();
  check_seeds();
  check_sharing();
  check_memory();
  check_long_chunks();
  check_room();
  for (uint64_t seed = 0; seed < 30; ++seed) check_random(seed);
  return 0;
}
