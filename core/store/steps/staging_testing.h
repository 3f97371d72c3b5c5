#pragma once
// A small memory with a disk, for tests, and helpers to fill it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "store/engine/engine.h"
#include "store/engine/mock_tier_testing.h"

namespace tengen::store::engine {

constexpr uint64_t kSlot = 4096;

inline TableConfig table_of(const std::string& name, const char* sampler, uint64_t max_items) {
  TableConfig config;
  config.name = name;
  config.sampler = selector_of(sampler);
  config.max_items = max_items;
  return config;
}

// Returns the config of a queue, a table that samples each item once.
inline TableConfig queue_of(const std::string& name, uint64_t max_items) {
  TableConfig config = table_of(name, "fifo", max_items);
  config.max_times_sampled = 1;
  return config;
}

// A store with one pool and `num_slots` chunks in memory; without a disk, memory is ample.
struct SmallWorld {
  SmallWorld(uint64_t num_slots, uint64_t num_rows, uint32_t length = 1)
      : memory("", (num_rows == 0 ? 100'000 : num_slots) * kSlot),
        disk(&tier, num_rows * kSlot),
        engine(&memory, 3, nullptr, num_rows == 0 ? nullptr : &disk) {
    engine.add_pool(Schema({{"x", "u8", {}, 0}}, length));
  }
  uint64_t* at(uint32_t slot) {
    return reinterpret_cast<uint64_t*>(engine.pool(0).slots().at(slot));
  }
  // Appends a chunk with the numbers from `first` on. Returns its slot, or none.
  std::optional<uint32_t> append(uint32_t writer, uint64_t first) {
    const std::optional<uint32_t> slot = engine.grant(writer);
    if (!slot) return slot;
    for (uint32_t i = 0; i < engine.pool(0).schema().steps_per_chunk(); ++i)
      at(*slot)[i] = first + i;
    engine.append(writer, *slot);
    return slot;
  }
  std::vector<uint64_t> values(const Loan& loan) {
    std::vector<uint64_t> values;
    for (const Piece& piece : loan.pieces) {
      for (uint32_t i = 0; i < piece.num_steps; ++i) {
        values.push_back(at(piece.slot)[piece.offset + i]);
      }
    }
    return values;
  }
  Collected wait(Loan* loan) {
    if (loan->is_ready) return Collected::kReady;
    Collected collected = engine.collect(loan);
    while (collected == Collected::kNotYet && !tier.waiting.empty()) {
      tier.end_one(rng, engine);
      collected = engine.collect(loan);
    }
    return collected;
  }

  // The number of chunk reads for loans of a table.
  uint64_t num_reads(uint32_t table) const {
    const ChunkReads& reads = engine.chunk_reads(table);
    return reads.num_hits + reads.num_misses;
  }

  MockTier tier;
  Memory memory;
  Disk disk;
  Engine engine;
  Rng rng{1, 0, 0, 0, Purpose::kTest};
};

// Fills a table with one item per step: the numbers 0 to count - 1.
inline uint32_t fill(SmallWorld& world, uint32_t table, uint64_t count) {
  const SessionId session = world.engine.begin_session();
  const uint32_t writer = world.engine.open_writer(session, "filler", 0).writer;
  for (uint64_t i = 0; i < count; ++i) {
    while (!world.append(writer, i)) {
      TENGEN_CHECK(!world.tier.waiting.empty());
      world.tier.end_one(world.rng, world.engine);
    }
    world.engine.insert(writer, {table, i, i, 1, static_cast<double>(i)});
    world.engine.release_before(writer, i + 1);
  }
  return writer;
}

}  // namespace tengen::store::engine
