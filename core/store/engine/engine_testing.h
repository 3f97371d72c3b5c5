#pragma once
// Random commands to an engine for tests, with or without a disk.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "store/engine/engine.h"
#include "store/engine/mock_tier_testing.h"

namespace tengen::store::engine {

constexpr uint64_t kStepBytes = 64;

// Returns configs of tables without random sampling, so that a test can compare two engines.
inline std::vector<TableConfig> configs() {
  std::vector<TableConfig> configs(4);
  for (TableConfig& config : configs) config.sampler = selector_of("fifo");
  configs[0].name = "queue";
  configs[0].limits = {1.0, 1, 0.0, 60.0};
  configs[0].max_times_sampled = 1;
  configs[1].name = "thrice";
  configs[1].max_items = 40;
  configs[1].max_times_sampled = 3;
  configs[2].name = "pairs";
  configs[2].num_steps = 2;
  configs[3].name = "small";
  configs[3].max_items = 30;
  return configs;
}

// The number of slots in memory, and of rows on disk, per pool.
constexpr uint64_t kNumSlots = 32;
constexpr uint64_t kNumRows = 4000;

// A test engine with its own memory, and optionally a disk. A step's first word is its stamp.
struct World {
  explicit World(bool with_disk = false, bool has_checkpoints = false)
      : has_disk(with_disk),
        memory("", with_disk ? 2 * kNumSlots * Disk::kAlignment : 400 * kStepBytes),
        disk(&tier, kNumRows * Disk::kAlignment, has_checkpoints),
        engine(&memory, 7, &log, with_disk ? &disk : nullptr) {
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 1));
    engine.add_pool(Schema({{"x", "u1", {kStepBytes}, 0}}, 3));
    for (const TableConfig& config : configs()) {
      engine.add_table(config, config.name == "pairs" || config.name == "small" ? 1 : 0);
    }
  }
  // Moves the changes that were logged since the last call of take() to `records`.
  void take() {
    records.insert(records.end(), log.pending().begin(), log.pending().end());
    log.clear();
  }
  void end_transfers() { tier.end_all(order, engine); }
  // Returns the stamp of a step, its first word.
  uint64_t* stamp(uint32_t pool, uint32_t slot, uint32_t step = 0) {
    return reinterpret_cast<uint64_t*>(engine.pool(pool).slots().at(slot) + step * kStepBytes);
  }
  // Copies the slots and rows of `from`, because slabs and files outlive a process.
  void take_bytes(const World& from) {
    *tier.rows = *from.tier.rows;
    for (uint32_t pool = 0; pool < 2; ++pool) {
      const Slots& slots = from.engine.pool(pool).slots();
      for (uint32_t slot = 0; slot < slots.num_slots(); ++slot) {
        std::memcpy(stamp(pool, slot), slots.at(slot), slots.slot_bytes());
      }
    }
  }

  const bool has_disk;
  MockTier tier;
  Rng order{5, 0, 0, 0, Purpose::kTest};  // generates the order in which transfers end
  Memory memory;
  Disk disk;
  Log log;
  Engine engine;
  std::vector<std::byte> records;
  std::map<std::pair<uint32_t, int64_t>, int64_t>
      keys;  // keys of sampled items, by table and serial
};

struct Client {
  SessionId session;
  std::string name;
  uint32_t pool;
  uint32_t writer;
  uint64_t sequence;
  uint64_t num_steps = 0;
  std::vector<uint64_t> leases;
};

// Waits until the steps of a loan are in memory; if other loans hold the memory, ends them.
inline void wait(World& world, std::vector<Client>& clients, Loan* loan) {
  while (!loan->is_ready) {
    world.end_transfers();
    if (world.engine.collect(loan) != Collected::kNotYet) continue;
    const auto holder = std::find_if(clients.begin(), clients.end(),
                                     [](const Client& client) { return !client.leases.empty(); });
    TENGEN_CHECK(holder != clients.end());
    world.engine.ack(holder->session, holder->leases.back(), {});
    holder->leases.pop_back();
  }
}

// Executes one random command in `world`. Returns a string with all results.
inline std::string act(Rng& rng, World& world, std::vector<Client>& clients, uint64_t* num_names) {
  Engine& engine = world.engine;
  std::string said;
  const auto say = [&](const auto& value) { said += std::to_string(value) + " "; };
  if (clients.size() < 4 && rng.below(10) == 0) {
    const uint32_t pool = rng.below(2);
    // Half of the names come from a small set, so that some are reused.
    const std::string name = "w" + std::to_string(rng.below(2) == 0 ? rng.below(8) : ++*num_names);
    const SessionId session = engine.begin_session();
    say(session);
    if (engine.is_writer_open(name)) {
      engine.end_session(session);
      return said;
    }
    const auto opened = engine.open_writer(session, name, pool);
    say(opened.next_sequence);
    clients.push_back({session, name, pool, opened.writer, opened.next_sequence, 0, {}});
    return said;
  }
  if (clients.empty()) return said;
  Client& client = clients[rng.below(static_cast<uint32_t>(clients.size()))];
  const uint32_t length = client.pool == 0 ? 1 : 3;
  switch (rng.below(12)) {
    case 0:
    case 1:
    case 2: {
      const auto slot = engine.grant(client.writer);
      say(slot.has_value());
      if (!slot || rng.below(8) == 0) return said;  // leaves the granted slot empty
      for (uint32_t i = 0; i < length; ++i) {
        *world.stamp(client.pool, *slot, i) =
            (uint64_t{client.session} << 32) + client.num_steps + i;
      }
      engine.append(client.writer, *slot);
      client.num_steps += length;
      return said;
    }
    case 3:
    case 4:
    case 5: {
      const uint32_t table = client.pool * 2 + rng.below(2);
      // Longer items would be sliced at random.
      const uint32_t num_steps = table == 2 ? 2 : 1;
      const uint64_t back = num_steps + rng.below(4);
      if (client.num_steps < back) return said;
      const Insert insert{table, client.sequence + rng.below(2), client.num_steps - back, num_steps,
                          static_cast<double>(rng.below(20))};
      try {
        const InsertResult result = engine.insert(client.writer, insert);
        say(static_cast<int>(result));
        if (result != InsertResult::kBlocked) client.sequence = insert.sequence + 1;
      } catch (const Error& error) {
        said += error.what();
      }
      return said;
    }
    case 6:
      engine.release_before(client.writer,
                            client.num_steps - std::min<uint64_t>(client.num_steps, rng.below(8)));
      return said;
    case 7:
    case 8: {
      const uint32_t table = rng.below(4);
      Loan loan;
      const bool drawn = engine.sample(client.session, table, 1 + rng.below(3), &loan);
      say(drawn);
      if (!drawn) return said;
      wait(world, clients, &loan);
      say(loan.lease);
      say(loan.table_size);
      client.leases.push_back(loan.lease);
      if (table == 3) return said;  // results of this table are not compared
      for (const Sample& sample : loan.samples) {
        say(serial_of(sample.key));
        world.keys[{table, serial_of(sample.key)}] = sample.key;
      }
      for (const Piece& piece : loan.pieces) {
        for (uint32_t i = 0; i < piece.num_steps; ++i) {
          say(*world.stamp(engine.pool_of(table), piece.slot, piece.offset + i));
        }
      }
      return said;
    }
    case 9:
    case 10: {
      if (client.leases.empty()) return said;
      const size_t which = rng.below(static_cast<uint32_t>(client.leases.size()));
      const uint64_t lease = client.leases[which];
      client.leases.erase(client.leases.begin() + static_cast<int64_t>(which));
      if (rng.below(4) == 0) {
        engine.give_back(client.session, lease);
      } else {
        engine.ack(client.session, lease, {});
      }
      return said;
    }
    default: {
      if (rng.below(3) != 0) {
        const uint32_t table = rng.below(3);
        const uint32_t age = rng.below(20);
        const auto newest = world.keys.upper_bound({table, INT64_MAX});
        const auto oldest = world.keys.lower_bound({table, INT64_MIN});
        if (std::distance(oldest, newest) <= age) return said;
        const int64_t key = std::prev(newest, age + 1)->second;
        engine.table(table).set_priorities(std::vector{key}, std::vector{1.5});
        if (rng.below(6) == 0) say(engine.table(table).erase(key));
        if (rng.below(6) == 0) {
          engine.table(3).set_capacity(10 + rng.below(30), 1000);
          TENGEN_CHECK(!engine.table(3).remove_some());
        }
        if (rng.below(6) == 0) engine.table(0).set_limits({1.0, 1, 0.0, 40.0 + rng.below(40)});
        return said;
      }
      engine.end_session(client.session);
      clients.erase(clients.begin() + (&client - clients.data()));
      return said;
    }
  }
}

inline std::string describe(const World& world) {
  std::string said;
  for (uint32_t i = 0; i < 4; ++i) {
    const Table& table = world.engine.table(i);
    said += std::to_string(table.size()) + " " + std::to_string(table.num_steps()) + " " +
            std::to_string(table.num_eligible()) + " " +
            std::to_string(table.limiter().num_inserts()) + " " +
            std::to_string(table.limiter().num_samples()) + " " +
            std::to_string(table.limiter().limits().max_cursor) + " " +
            world.engine.insert_waits(i) + world.engine.sample_waits(i, 3) + "; ";
  }
  for (uint32_t i = 0; i < 2; ++i) {
    said += std::to_string(world.engine.pool(i).streams().num_chunks()) + " ";
  }
  return said;
}

}  // namespace tengen::store::engine
