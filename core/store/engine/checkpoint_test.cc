// After its memory is lost, a store resumes in the state in which its last checkpoint began.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "store/engine/engine_testing.h"
#include "store/steps/gather.h"

using namespace tengen;
using namespace tengen::store::engine;

namespace {

// A checkpoint: its records and saved chunks, and a copy of the engine when the checkpoint began.
struct Made {
  std::vector<std::byte> records;
  std::vector<event::ChunkSaved> saved;
  std::unique_ptr<World> then;
};

// Begins a checkpoint of the complete log and the steps of incomplete chunks.
std::unique_ptr<Made> begin_checkpoint(World& world) {
  auto made = std::make_unique<Made>();
  world.take();
  for (const OpenSteps& open : world.engine.begin_checkpoint()) {
    const Pool& pool = world.engine.pool(open.pool);
    const SavedSteps steps =
        pack_steps(pool.schema(), pool.slots().at(open.slot), open.first, open.count);
    world.log.add(
        event::StepsSaved{open.pool, open.chunk, open.first, open.count, steps.bytes.size()},
        std::span(steps.bytes));
  }
  world.engine.note_open_steps_kept();
  world.take();
  made->records = world.records;
  State state;
  state.apply(made->records);
  state.open_steps.clear();
  made->then = std::make_unique<World>(true);
  made->then->engine.restore(state);
  made->then->take_bytes(world);
  for (const auto& [id, session] : state.sessions) made->then->engine.end_session(id);
  return made;
}

// Samples and removes all items of all tables, and returns them with the stamps of their steps.
std::vector<std::string> drain(World& world) {
  std::vector<std::string> said;
  std::vector<Client> nobody;
  const SessionId session = world.engine.begin_session();
  for (uint32_t t = 0; t < world.engine.num_tables(); ++t) {
    Loan loan;
    while (world.engine.sample(session, t, 1, &loan)) {
      wait(world, nobody, &loan);
      std::string& line = said.emplace_back(std::to_string(t));
      line += " " + std::to_string(serial_of(loan.samples[0].key));
      for (const Piece& piece : loan.pieces) {
        for (uint32_t i = 0; i < piece.num_steps; ++i) {
          line += " " + std::to_string(
                            *world.stamp(world.engine.pool_of(t), piece.slot, piece.offset + i));
        }
      }
      world.engine.give_back(session, loan.lease);
      world.engine.table(t).erase(loan.samples[0].key);
      world.end_transfers();
    }
    // Some items cannot be sampled because of the rate limiter or their uses.
    said.push_back(std::to_string(world.engine.table(t).size()));
  }
  return said;
}

struct Counts {
  int num_equal = 0;
  int num_lost = 0;
  uint64_t num_open = 0;  // chunks restored from the log
};

// Loses the host and checks the restored store: memory is gone, and rows have the data so far.
void check_restored(World& world, const Made& made, bool rewritten, Counts* counts) {
  State state;
  state.apply(made.records);
  Log saved;
  for (const event::ChunkSaved& one : made.saved) saved.add(one);
  state.apply(saved.pending());
  World next(true, true);
  next.log.clear();
  std::vector<uint32_t> promised;
  for (const TableConfig& config : configs()) promised.push_back(config.num_promised());
  const uint64_t num_lost =
      state.lose_memory({&next.engine.pool(0).schema(), &next.engine.pool(1).schema()}, promised);
  counts->num_open += state.open_steps.size();
  if (rewritten) {
    std::vector<std::byte> records;
    state.write([&](std::span<const std::byte> some) {
      records.insert(records.end(), some.begin(), some.end());
    });
    state = State();
    state.apply(records);
  }
  *next.tier.rows = *world.tier.rows;
  next.engine.restore(state);
  const std::string sizes = describe(*made.then);
  if (num_lost > 0) {
    counts->num_lost += 1;
    return;
  }
  TENGEN_CHECK(describe(next).substr(0, describe(next).rfind(';')) ==
               sizes.substr(0, sizes.rfind(';')));
  TENGEN_CHECK(drain(next) == drain(*made.then));
  counts->num_equal += 1;
}

// Kills the server and returns its successor. The data of the last checkpoint still exists.
std::unique_ptr<World> killed(World& world) {
  world.take();
  State state;
  state.apply(world.records);
  state.open_steps.clear();  // they are in memory, and the next log does not record them
  auto next = std::make_unique<World>(true, true);
  next->log.clear();
  state.write([&](std::span<const std::byte> some) {
    next->records.insert(next->records.end(), some.begin(), some.end());
  });
  next->engine.restore(state);
  next->take_bytes(world);
  next->keys = world.keys;
  return next;
}

void check_random(uint64_t seed, Counts* counts) {
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  auto owner = std::make_unique<World>(true, true);
  std::vector<Client> clients;
  uint64_t num_names = 100;
  std::unique_ptr<Made> made;
  for (int round = 0; round < 6; ++round) {
    World& world = *owner;
    const auto act_some = [&](uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        act(rng, world, clients, &num_names);
        if (rng.below(2) == 0) world.end_transfers();
      }
    };
    act_some(50 + rng.below(150));
    std::unique_ptr<Made> next = begin_checkpoint(world);
    // The store is used while the checkpoint is made.
    act_some(rng.below(40));
    while (world.engine.checkpoint_state() == Engine::Checkpoint::kUnderWay) {
      TENGEN_CHECK(!world.tier.waiting.empty());
      world.tier.end_one(world.order, world.engine);
    }
    TENGEN_CHECK(world.engine.checkpoint_state() == Engine::Checkpoint::kSaved);
    next->saved = world.engine.saved_of_checkpoint();
    act_some(rng.below(10));
    // Until the new checkpoint is on disk, the previous one is valid.
    if (made && rng.below(4) == 0) check_restored(world, *made, rng.below(2) == 0, counts);
    made = std::move(next);
    world.engine.end_checkpoint();
    act_some(rng.below(60));
    if (rng.below(3) == 0) {
      owner = killed(world);
      for (uint32_t i = 0; i < rng.below(60); ++i) {
        act(rng, *owner, clients, &num_names);
        owner->end_transfers();
      }
    }
    if (rng.below(2) == 0) {
      check_restored(*owner, *made, rng.below(2) == 0, counts);
      made.reset();
    }
  }
  if (!made) return;
  // If no more checkpoints are made and there is space, the data of the last one remains.
  owner->engine.give_up_checkpoints();
  for (uint32_t i = 0; i < 300; ++i) {
    act(rng, *owner, clients, &num_names);
    owner->end_transfers();
  }
  check_restored(*owner, *made, false, counts);
}

// A chunk is complete if items cover its last step, even if no other chunk follows.
void check_full_chunks() {
  World world(true, true);
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "a", 1).writer;
  world.engine.append(writer, *world.engine.grant(writer));
  const auto insert = [&](uint64_t sequence, uint64_t first) {
    world.engine.insert(writer, {3, sequence, first, 1, 1.0});
  };
  // Repeating begin_checkpoint() returns the same steps, for example after a lack of memory.
  const auto open = [&] {
    const std::vector<OpenSteps> steps = world.engine.begin_checkpoint();
    TENGEN_CHECK(world.engine.begin_checkpoint().size() == steps.size());
    world.engine.note_open_steps_kept();
    return steps.empty() ? std::pair(0u, 0u) : std::pair(steps[0].first, steps[0].count);
  };
  TENGEN_CHECK(open() == std::pair(0u, 0u));
  insert(0, 0);
  TENGEN_CHECK(open() == std::pair(0u, 1u));
  TENGEN_CHECK(open() == std::pair(0u, 0u));
  insert(1, 1);
  TENGEN_CHECK(open() == std::pair(1u, 1u));
  insert(2, 2);
  TENGEN_CHECK(open() == std::pair(0u, 0u));
  TENGEN_CHECK(world.tier.waiting.size() == 1);
}

// One writer with chunks of one step, and a disk of `num_rows` rows.
struct SmallDisk {
  explicit SmallDisk(uint64_t num_rows) : disk(&tier, num_rows * Disk::kAlignment, true) {
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1));
    engine.add_table(configs()[1], 0);
    writer = engine.open_writer(engine.begin_session(), "a", 0).writer;
  }
  void insert(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i, ++num_inserted) {
      engine.append(writer, *engine.grant(writer));
      const auto priority = static_cast<double>(num_inserted);
      engine.insert(writer, {0, num_inserted, num_inserted, 1, priority});
    }
  }

  MockTier tier;
  Memory memory{"", kNumSlots * Disk::kAlignment};
  Disk disk;
  Log log;
  Engine engine{&memory, 7, &log, &disk};
  uint32_t writer = 0;
  uint64_t num_inserted = 0;
  Rng order{5, 0, 0, 0, Purpose::kTest};  // decides the order in which transfers end
};

// Chunks for which the disk has no space are in the log first, and move to the disk later.
void check_full_disk() {
  SmallDisk small(2);
  Engine& engine = small.engine;
  small.insert(5);
  TENGEN_CHECK(engine.begin_checkpoint().empty());
  while (engine.checkpoint_state() == Engine::Checkpoint::kUnderWay)
    small.tier.end_one(small.order, engine);
  TENGEN_CHECK(engine.checkpoint_state() == Engine::Checkpoint::kStuck);
  TENGEN_CHECK(engine.saved_of_checkpoint().size() == 2);
  const std::vector<OpenSteps> rest = engine.rest_of_checkpoint();
  TENGEN_CHECK(rest.size() == 3 && rest[0].first == 0 && rest[0].count == 1);
  engine.end_checkpoint();
  TENGEN_CHECK(engine.rest_of_checkpoint().size() == 3);
  // Rows of removed items become free with the next checkpoint.
  engine.release_before(small.writer, 5);
  for (uint32_t i = 0; i < 2; ++i) TENGEN_CHECK(engine.table(0).erase(key_of(i, i)));
  engine.begin_checkpoint();
  TENGEN_CHECK(engine.checkpoint_state() == Engine::Checkpoint::kStuck);
  engine.end_checkpoint();
  small.tier.end_all(small.order, engine);
  TENGEN_CHECK(engine.rest_of_checkpoint().size() == 1);
}

// After checkpoints are given up, rows of the last one are used only if no other rows are free.
void check_given_up() {
  SmallDisk small(4);
  // Inserts items, and returns the row positions of those that are saved.
  const auto save = [&](uint64_t count) {
    small.insert(count);
    small.engine.release_before(small.writer, small.num_inserted);
    small.engine.begin_checkpoint();
    std::vector<uint32_t> places;
    while (!small.tier.waiting.empty()) {
      for (const auto& [transfer, is_load] : small.tier.waiting) places.push_back(transfer.place);
      small.tier.end_all(small.order, small.engine);
    }
    std::sort(places.begin(), places.end());
    return places;
  };
  const auto erase = [&](uint64_t number) {
    TENGEN_CHECK(small.engine.table(0).erase(key_of(number, number)));
    small.engine.give_up_checkpoints();
  };
  TENGEN_CHECK((save(3) == std::vector<uint32_t>{0, 1, 2}));
  small.engine.end_checkpoint();
  erase(1);
  erase(2);
  TENGEN_CHECK((save(2) == std::vector<uint32_t>{1, 3}));
  TENGEN_CHECK((save(1) == std::vector<uint32_t>{2}));
  TENGEN_CHECK(save(1).empty());
  erase(0);
  TENGEN_CHECK((save(0) == std::vector<uint32_t>{0}));
}

// Some items that are removed while a checkpoint is made are missing from the checkpoint.
void check_lost() {
  World world(true, true);
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "a", 0).writer;
  for (uint64_t i = 0; i < 2; ++i) {
    world.engine.append(writer, *world.engine.grant(writer));
    world.engine.insert(writer, {1, i, i, 1, 1.0});
  }
  world.engine.release_before(writer, 2);
  Counts counts;
  const std::unique_ptr<Made> made = begin_checkpoint(world);
  Loan loan;
  TENGEN_CHECK(world.engine.sample(session, 1, 1, &loan));
  const int64_t key = loan.samples[0].key;
  world.engine.end_session(session);
  TENGEN_CHECK(world.engine.table(1).erase(key));
  // A grant to another writer makes the engine notice that the removed item's chunk is unused.
  const SessionId next = world.engine.begin_session();
  TENGEN_CHECK(world.engine.grant(world.engine.open_writer(next, "b", 0).writer).has_value());
  world.end_transfers();
  TENGEN_CHECK(world.engine.checkpoint_state() == Engine::Checkpoint::kSaved);
  made->saved = world.engine.saved_of_checkpoint();
  TENGEN_CHECK(made->saved.size() == 1);
  check_restored(world, *made, false, &counts);
  TENGEN_CHECK(counts.num_lost == 1 && counts.num_equal == 0);
}

}  // namespace

// Lost items count as used, so that a queue regains its full length.
void check_limits() {
  World world(true, true);
  const uint32_t writer = world.engine.open_writer(world.engine.begin_session(), "a", 0).writer;
  for (uint64_t i = 0; i < 6; ++i) {
    const std::optional<uint32_t> slot = world.engine.grant(writer);
    TENGEN_CHECK(slot.has_value());
    world.engine.append(writer, *slot);
    const auto result = world.engine.insert(writer, {0, i, i, 1, 1.0});
    TENGEN_CHECK(result == InsertResult::kInserted);
  }
  world.take();
  State state;
  state.apply(world.records);
  const Schema* schemas[] = {&world.engine.pool(0).schema(), &world.engine.pool(1).schema()};
  const uint64_t num_lost = state.lose_memory({schemas[0], schemas[1]}, {1, 0, 0, 0});
  const SavedTable& queue = state.tables[0];
  TENGEN_CHECK(num_lost > 0 && queue.num_inserts == 6 && queue.num_samples == num_lost);
}

int main() {
  check_limits();
  Counts counts;
  for (uint64_t seed = 0; seed < 60; ++seed) check_random(seed, &counts);
  TENGEN_CHECK(counts.num_equal > 200 && counts.num_lost == 0);
  TENGEN_CHECK(counts.num_open > 50);
  check_full_chunks();
  check_lost();
  check_full_disk();
  check_given_up();
  return 0;
}
