// Reduces a state to the parts that survive the loss of memory.

#include <algorithm>
#include <set>

#include "store/state/state.h"

namespace tengen::store::engine {
namespace {

// Determines the items that have all their steps on disk or in the log.
class Survivors {
 public:
  Survivors(const State& state, const std::vector<const Schema*>& schemas)
      : state_(state), schemas_(schemas) {}

  // Whether all steps of an item survive. Throws Error for an impossible item, because the numbers
  // of the item have not been checked before.
  bool has(const SavedTable& table, const SavedItem& item) {
    if (table.pool >= std::min({schemas_.size(), state_.streams.size(), state_.chunks.size()})) {
      refuse_state("pool", table.pool);
    }
    if (item.steps.stream >= state_.streams[table.pool].size()) {
      refuse_state("stream", item.steps.stream);
    }
    const uint64_t length = schemas_[table.pool]->steps_per_chunk();
    const StepRange& steps = item.steps;
    const uint64_t end = steps.first + steps.num_steps;
    const SavedStream& stream = state_.streams[table.pool][steps.stream];
    for (uint64_t number = steps.first / length; number * length < end; ++number) {
      if (number < stream.first_chunk || number - stream.first_chunk >= stream.slots.size()) {
        return false;
      }
      const uint32_t chunk = stream.slots[number - stream.first_chunk];
      if (chunk >= state_.chunks[table.pool].size()) refuse_state("chunk", chunk);
      if (state_.chunks[table.pool][chunk].place != kNowhere) continue;
      if (num_told(table.pool, chunk) < std::min(end - number * length, length)) return false;
      needed_.insert({table.pool, chunk});
    }
    return true;
  }
  // Whether an item needs steps of this chunk from the log.
  bool needs(const std::pair<uint32_t, uint32_t>& chunk) const { return needed_.count(chunk) != 0; }

 private:
  // Returns the number of steps that the log contains from the chunk's start without a gap.
  uint64_t num_told(uint32_t pool, uint32_t chunk) const {
    const auto told = state_.open_steps.find({pool, chunk});
    uint64_t end = 0;
    if (told == state_.open_steps.end()) return end;
    for (const SavedSteps& steps : told->second) {
      if (steps.first <= end) end = std::max(end, uint64_t{steps.first} + steps.count);
    }
    return end;
  }

  const State& state_;
  const std::vector<const Schema*>& schemas_;
  std::set<std::pair<uint32_t, uint32_t>> needed_;
};

}  // namespace

uint64_t State::lose_memory(const std::vector<const Schema*>& schemas,
                            const std::vector<uint32_t>& num_promised) {
  if (tables.size() > num_promised.size()) refuse_state("table", tables.size() - 1);
  Log log;
  for (const auto& [id, session] : sessions) log.add(event::SessionEnded{id, 0});
  apply(log.pending());
  Survivors survivors(*this, schemas);
  uint64_t num_lost = 0;
  for (uint32_t i = 0; i < tables.size(); ++i) {
    SavedTable& table = tables[i];
    for (SavedItem& item : table.items) {
      if (item.key < 0 || survivors.has(table, item)) continue;
      item.key = -1;
      ++num_lost;
      // The promised uses of a dropped item will never come, so inserts must not wait for them.
      if (num_promised[i] > item.times_sampled) {
        table.num_samples += num_promised[i] - item.times_sampled;
      }
    }
  }
  std::erase_if(open_steps, [&](const auto& one) { return !survivors.needs(one.first); });
  std::fill(num_slabs.begin(), num_slabs.end(), 0);
  for (std::vector<SavedChunk>& of_pool : chunks) {
    for (SavedChunk& chunk : of_pool) chunk.slot = kNowhere;
  }
  return num_lost;
}

}  // namespace tengen::store::engine
