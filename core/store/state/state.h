#pragma once
// The complete state from which an engine can resume. It is built from the log alone, without an
// engine, and contains no samples and no trees.

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

// Throws the Error for an impossible number `value` in a state or in records.
[[noreturn]] void refuse_state(const char* what, uint64_t value);

// The state of an engine, built from records. Not thread-safe.
class State {
 public:
  // The maximum number of pools in a store.
  static constexpr uint32_t kMaxPools = 1 << 10;
  // The maximum length of a list. Without it, a few bytes of a hostile record with a high index
  // could make a list very long. The default is the limit of a real store; tests set a lower limit.
  static uint64_t most_entries;

  // Applies complete records in their order. Throws Error for an impossible record; the state is
  // then unusable. Throws bad_alloc if memory runs out; then the first `num_applied` bytes have
  // been applied, and the rest may be applied later.
  void apply(std::span<const std::byte> records, size_t* num_applied = nullptr);
  // Drops everything that was lost with memory: every session, and all steps that are neither on
  // disk nor in the log. `schemas` has one entry per pool; `num_promised` one per table, from its
  // config. Returns the number of dropped items. Throws Error if no such store can have this state.
  uint64_t lose_memory(const std::vector<const Schema*>& schemas,
                       const std::vector<uint32_t>& num_promised);
  // Calls `take` repeatedly with records. A new State that applies all of them equals this state.
  void write(const std::function<void(std::span<const std::byte>)>& take) const;

  std::vector<SavedTable> tables;
  std::vector<uint32_t> num_slabs;                // by pool
  std::vector<std::vector<SavedStream>> streams;  // by pool
  std::vector<std::vector<SavedChunk>> chunks;    // by pool; only for pools with a disk
  std::vector<uint32_t> num_places;               // by pool; number of rows that ever held a chunk
  std::map<std::pair<uint32_t, uint32_t>, std::vector<SavedSteps>> open_steps;  // by pool and chunk
  std::vector<SavedWriter> writers;                                             // by index
  std::unordered_map<std::string, uint64_t> next_sequences;                     // by writer name
  std::map<uint32_t, SavedSession> sessions;
  std::map<uint64_t, SavedLoan> loans;  // by lease
  uint64_t next_session = 0;
  uint64_t next_lease = 0;
  uint64_t num_restarts = 0;
};

}  // namespace tengen::store::engine
