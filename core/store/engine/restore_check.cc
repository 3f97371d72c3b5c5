// Checks whether a store can resume from a state. A correct checksum proves only that the bytes
// were not changed, and a hostile or faulty store can write correct checksums. So each number in a
// state is checked here before the store uses it as an index.

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "store/engine/engine.h"

namespace tengen::store::engine {
namespace {

// The limits of the numbers that the saved state of one pool may contain.
struct Bounds {
  uint64_t steps_per_chunk = 0;
  uint64_t num_slots = 0;
  uint64_t num_chunks = 0;  // number of chunks; without a disk, the number of slots
  bool has_disk = false;
};

void check_chunk(const Bounds& pool, uint64_t chunk) {
  if (chunk >= pool.num_chunks) refuse_state("chunk", chunk);
}

// Throws Error unless the steps lie in existing chunks of their stream.
void check_steps(const State& state, const Bounds& bounds, uint32_t pool, const StepRange& steps) {
  if (steps.stream >= state.streams[pool].size()) refuse_state("stream", steps.stream);
  const SavedStream& stream = state.streams[pool][steps.stream];
  const uint64_t begin = stream.first_chunk * bounds.steps_per_chunk;
  const uint64_t end = begin + stream.slots.size() * bounds.steps_per_chunk;
  if (steps.num_steps == 0 || steps.first < begin || steps.first >= end ||
      steps.num_steps > end - steps.first) {
    refuse_state("step", steps.first);
  }
}

void check_stream(const Bounds& bounds, const SavedStream& stream) {
  constexpr uint64_t kMaxSteps = uint64_t{1} << 62;
  const uint64_t end = stream.first_chunk + stream.slots.size();
  if (stream.first_chunk > kMaxSteps / bounds.steps_per_chunk ||
      end > kMaxSteps / bounds.steps_per_chunk) {
    refuse_state("chunk", stream.first_chunk);
  }
  if (stream.first_of_writer < stream.first_chunk || stream.first_of_writer > end) {
    refuse_state("first chunk of a writer", stream.first_of_writer);
  }
  for (const uint32_t slot : stream.slots) check_chunk(bounds, slot);
}

// Throws Error for impossible locations of the chunks of a pool with a disk.
void check_cells(const Bounds& bounds, std::span<const SavedChunk> chunks) {
  for (const SavedChunk& chunk : chunks) {
    if (chunk.slot != kNowhere && chunk.slot >= bounds.num_slots) refuse_state("slot", chunk.slot);
    if (chunk.place != kNowhere && chunk.place > kMaxItems) refuse_state("place", chunk.place);
  }
}

}  // namespace

void Engine::check_restorable(const State& state) const {
  check(state.tables.size() == tables_.size(), "tables", tables_.size(),
        "must be as many as before; restore the tables");
  for (uint32_t i = 0; i < num_tables(); ++i) {
    check(state.tables[i].pool == tables_[i].pool, "pool", tables_[i].pool,
          "must be the table's previous one; restore the tables");
  }
  if (state.num_slabs.size() > num_pools()) refuse_state("pool", state.num_slabs.size());
  std::vector<Bounds> bounds;
  for (uint32_t i = 0; i < state.num_slabs.size(); ++i) {
    const Pool& pool = *pools_[i];
    check(state.chunks[i].empty() || pool.staging() != nullptr, "disk_bytes", 0,
          "must be above 0, as before; restore it");
    const uint64_t num_slots = uint64_t{state.num_slabs[i]} * pool.slots().slots_per_slab();
    const bool has_disk = pool.staging() != nullptr;
    bounds.push_back({pool.schema().steps_per_chunk(), num_slots,
                      has_disk ? state.chunks[i].size() : num_slots, has_disk});
    for (const SavedStream& stream : state.streams[i]) check_stream(bounds[i], stream);
    check_cells(bounds[i], state.chunks[i]);
  }
  for (const auto& [place, steps] : state.open_steps) {
    if (place.first >= bounds.size() || !bounds[place.first].has_disk) {
      refuse_state("pool", place.first);
    }
    check_chunk(bounds[place.first], place.second);
  }
  for (uint32_t i = 0; i < num_tables(); ++i) {
    const SavedTable& table = state.tables[i];
    for (size_t slot = 0; slot < table.items.size(); ++slot) {
      const SavedItem& item = table.items[slot];
      if (item.key < 0) continue;
      if (slot_of(item.key) != slot || serial_before(table.num_serials, item.key) < 0)
        refuse_state("key", static_cast<uint64_t>(item.key));
      if (!std::isfinite(item.priority) || item.priority < 0)
        refuse_state("priority of item", slot);
      if (item.steps.num_steps < this->table(i).config().num_steps) {
        refuse_state("steps of an item", item.steps.num_steps);
      }
      check_steps(state, bounds[table.pool], table.pool, item.steps);
    }
  }
  check_loans(state);
  std::set<std::string> names;
  std::set<std::pair<uint32_t, uint32_t>> streams;
  for (const SavedWriter& writer : state.writers) {
    if (writer.name.empty()) continue;
    if (writer.pool >= bounds.size()) refuse_state("pool", writer.pool);
    const auto& of = state.streams[writer.pool];
    if (writer.stream >= of.size() || !of[writer.stream].is_open ||
        !streams.insert({writer.pool, writer.stream}).second || !names.insert(writer.name).second) {
      refuse_state("stream of a writer", writer.stream);
    }
    for (const uint32_t chunk : writer.granted) check_chunk(bounds[writer.pool], chunk);
  }
}

void Engine::check_loans(const State& state) const {
  for (const auto& [lease, loan] : state.loans) {
    if (loan.table >= num_tables()) refuse_state("table", loan.table);
    const uint32_t pool = tables_[loan.table].pool;
    const Bounds bounds{pools_[pool]->schema().steps_per_chunk(), 0, 0, false};
    for (const StepRange& steps : loan.steps) check_steps(state, bounds, pool, steps);
  }
}

}  // namespace tengen::store::engine
