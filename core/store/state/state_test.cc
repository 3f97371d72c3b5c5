#include "store/state/state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "base/shortage_testing.h"
#include "base/testing.h"
#include "store/engine/engine_testing.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// Returns a world whose engine is restored from the records of `from`, or from a rewritten state.
std::unique_ptr<World> restored(World& from, bool rewritten) {
  from.take();
  State state;
  state.apply(from.records);
  auto world = std::make_unique<World>(from.has_disk);
  world->take();  // clears the log of the tables, which the state already has
  world->records = from.records;
  if (rewritten) {
    world->records.clear();
    state.write([&](std::span<const std::byte> records) {
      world->records.insert(world->records.end(), records.begin(), records.end());
    });
    State again;
    again.apply(world->records);
    world->engine.restore(again);
  } else {
    world->engine.restore(state);
  }
  world->take_bytes(from);
  world->keys = from.keys;
  return world;
}

void check_random(uint64_t seed, bool has_disk) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  auto world = std::make_unique<World>(has_disk);
  std::vector<Client> clients;
  uint64_t num_names = 100;
  uint64_t max_disk_bytes = 0;
  for (int restart = 0; restart < 8; ++restart) {
    for (uint32_t i = 0; i < 50 + rng.below(200); ++i) {
      act(rng, *world, clients, &num_names);
      // Some transfers are in progress when the store is killed.
      if (rng.below(2) == 0) world->end_transfers();
    }
    auto next = restored(*world, rng.below(2) == 0);
    TENGEN_CHECK(describe(*next) == describe(*world));
    // Rows at the end of the file that were free or unfinished may be missing.
    TENGEN_CHECK(next->disk.used_bytes() <= world->disk.used_bytes());
    max_disk_bytes = std::max(max_disk_bytes, next->disk.used_bytes());
    // Both worlds receive the same commands from here on.
    Rng same = rng;
    std::vector<Client> same_clients = clients;
    uint64_t same_names = num_names;
    for (int i = 0; i < 200; ++i) {
      world->end_transfers();
      next->end_transfers();
      const std::string said = act(rng, *world, clients, &num_names);
      TENGEN_CHECK(act(same, *next, same_clients, &same_names) == said);
      TENGEN_CHECK(describe(*next) == describe(*world));
    }
    world = std::move(next);
    clients = std::move(same_clients);
  }
  TENGEN_CHECK((max_disk_bytes > 0) == has_disk);
}

// A long-lived stream occupies little space in the state.
void check_trimming() {
  World world;
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "a", 0).writer;
  for (uint64_t i = 0; i < 1000; ++i) {
    world.engine.append(writer, *world.engine.grant(writer));
    world.engine.release_before(writer, i);
  }
  world.take();
  State state;
  state.apply(world.records);
  TENGEN_CHECK(state.streams[0].size() == 1 && state.streams[0][0].slots.size() == 1);
  TENGEN_CHECK(state.streams[0][0].first_chunk == 999);
}

void check_refusals() {
  World world;
  world.take();
  State state;
  std::vector<std::byte> cut(world.records.begin(), world.records.end() - 8);
  TENGEN_CHECK(throws([&] { state.apply(cut); }));
  Log log;
  log.add(event::Removed{key_of(0, 0), 0, 0});
  State removed;
  removed.apply(world.records);
  TENGEN_CHECK(throws([&] { removed.apply(log.pending()); }));
  log.clear();
  log.add(event::Acknowledged{3});
  TENGEN_CHECK(throws([&] { removed.apply(log.pending()); }));
  for (const int64_t wrong : {int64_t{-1}, std::numeric_limits<int64_t>::max()}) {
    log.clear();
    log.add(event::TableCounted{0, 0, 0, wrong});
    TENGEN_CHECK(throws([&] { removed.apply(log.pending()); }));
  }
  // The state has no tables, unlike the engine.
  State none;
  World other;
  TENGEN_CHECK(throws([&] { other.engine.restore(none); }));
}

// Values that no store writes are rejected.
void check_wrong_items() {
  World world;
  const uint32_t writer = world.engine.open_writer(world.engine.begin_session(), "a", 0).writer;
  world.engine.append(writer, *world.engine.grant(writer));
  world.engine.insert(writer, {1, 0, 0, 1, 1.0});
  world.take();
  for (const float wrong : {-1.0f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Log log;
    log.add(event::Inserted{key_of(7, 0), {0, 0, 1}, 1, 0, wrong, 0});
    State hostile;
    hostile.apply(world.records);
    hostile.apply(log.pending());
    World other;
    TENGEN_CHECK(throws([&] { other.engine.restore(hostile); }));
  }
  for (const int64_t wrong : {int64_t{-1}, (int64_t{1} << 33) << kSlotBits | 1}) {
    Log log;
    log.add(event::Inserted{wrong, {0, 0, 1}, 1, 0, 1.0f, 0});
    State hostile;
    hostile.apply(world.records);
    TENGEN_CHECK(throws([&] { hostile.apply(log.pending()); }));
  }
}

// A state that lacks the name of an open writer, although no store writes such a log.
void check_forgotten_name() {
  World world;
  const uint32_t writer = world.engine.open_writer(world.engine.begin_session(), "a", 0).writer;
  world.take();
  Log log;
  log.add(event::NameForgotten{1, 0}, std::span("a", 1));
  State state;
  state.apply(world.records);
  state.apply(log.pending());
  World again;
  again.engine.restore(state);
  again.engine.close_writer(writer);
  TENGEN_CHECK(!again.engine.is_writer_open("a"));
}

// Steps after a gap in the log are lost with the memory, even if the log has these steps.
void check_gaps() {
  const Schema schema({{"x", "u1", {1}, 0}}, 8);
  for (const bool has_gap : {false, true}) {
    Log log;
    log.add(event::TableAdded{0, 0});
    log.add(event::SessionBegun{0, 0});
    log.add(event::WriterOpened{0, 0, 0, 0, 1, 0}, std::span("a", 1));
    log.add(event::ChunkBegun{0, 0, 0, 0});
    log.add(event::Granted{0, 0});
    log.add(event::Appended{0, 0});
    const std::vector<std::byte> bytes(2);
    for (const uint32_t first : {0u, 2u, 4u}) {
      if (has_gap && first == 2) continue;
      log.add(event::StepsSaved{0, 0, first, 2, 2}, std::span(bytes));
    }
    for (uint32_t i = 0; i < 3; ++i) {
      log.add(event::Inserted{key_of(i, i), {2 * i, 0, 2}, 0, 0, 1.0f, 0});
    }
    State state;
    state.apply(log.pending());
    TENGEN_CHECK(state.lose_memory({&schema}, {0}) == (has_gap ? 2 : 0));
    TENGEN_CHECK(state.tables[0].items[0].key >= 0);
    TENGEN_CHECK((state.tables[0].items[2].key >= 0) == !has_gap);
  }
}

// After a lack of memory, apply() resumes with the record that failed.
void check_shortages() {
  World from(true);
  Rng rng(7, 0, 0, 0, Purpose::kTest);
  std::vector<Client> clients;
  uint64_t num_names = 100;
  for (int i = 0; i < 100; ++i) {
    act(rng, from, clients, &num_names);
    from.end_transfers();
  }
  from.take();
  const auto describe_state = [](const State& state) {
    std::vector<std::byte> records;
    state.write([&](std::span<const std::byte> some) {
      records.insert(records.end(), some.begin(), some.end());
    });
    return records;
  };
  State whole;
  whole.apply(from.records);
  // Each record fails once at each of its calls of `new`.
  State state;
  size_t num_applied = 0;
  for (int64_t num_news = 0; num_applied < from.records.size();) {
    const size_t before = num_applied;
    num_news_left = num_news;
    try {
      state.apply(std::span(from.records).subspan(num_applied), &num_applied);
      num_news_left = -1;
    } catch (const std::bad_alloc&) {
      num_news_left = -1;
      num_news = num_applied == before ? num_news + 1 : 0;
    }
  }
  TENGEN_CHECK(describe_state(state) == describe_state(whole));
}

}  // namespace

int main() {
  check_gaps();
  check_shortages();
  for (uint64_t seed = 0; seed < 16; ++seed) {
    for (const bool has_disk : {false, true}) check_random(seed, has_disk);
  }
  check_trimming();
  check_refusals();
  check_forgotten_name();
  check_wrong_items();
  return 0;
}
