#pragma once
// All that an engine must know to go on. Made from the log alone, without an engine: no draws, no
// trees.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/state/log.h"
#include "store/state/saved.h"
#include "store/state/schema.h"

namespace tengen::store::engine {

// Throws the Error of a number of a state, or of records, that no store can have.
[[noreturn]] void refuse_state(const char* what, uint64_t value);

// Not thread-safe.
class State {
 public:
  // The most pools of a store.
  static constexpr uint32_t kMaxPools = 1 << 10;
  // The most entries of a list. A few bytes of a record may name a late entry and so make the list
  // long. It is as many as a store may ever have; tests of hostile records set less.
  static uint64_t most_entries;

  // Applies whole records, in the order in which things happened. Throws Error for a record that is
  // not possible; then the state is of no use. Throws bad_alloc where memory runs out: then the
  // first `num_applied` bytes are applied, and the rest may be applied later.
  void apply(std::span<const std::byte> records, size_t* num_applied = nullptr);
  // Drops what was lost with memory: every session, and all steps that are neither on disk nor in
  // the log. `schemas` are those of the pools, `num_promised` of the tables' configs. Returns how
  // many items were dropped. Throws Error for a state of no such store.
  uint64_t lose_memory(const std::vector<const Schema*>& schemas,
                       const std::vector<uint32_t>& num_promised);
  // Calls `take` with records, some at a time, that make a new State equal to this one.
  void write(const std::function<void(std::span<const std::byte>)>& take) const;

  std::vector<SavedTable> tables;
  std::vector<uint32_t> num_slabs;                // by pool
  std::vector<std::vector<SavedStream>> streams;  // by pool
  std::vector<std::vector<SavedChunk>> chunks;    // by pool, with a disk
  std::vector<uint32_t> num_places;               // by pool: that ever held a chunk
  std::map<std::pair<uint32_t, uint32_t>, std::vector<SavedSteps>> open_steps;  // by pool, chunk
  std::vector<SavedWriter> writers;                                             // by number
  std::unordered_map<std::string, uint64_t> next_sequences;                     // by writer's name
  std::map<uint32_t, SavedSession> sessions;
  std::map<uint64_t, SavedLoan> loans;  // by lease
  uint64_t next_session = 0;
  uint64_t next_lease = 0;
  uint64_t num_restarts = 0;
  uint64_t num_repaired = 0;  // priorities that apply() brought into the range of a float
};

}  // namespace tengen::store::engine
