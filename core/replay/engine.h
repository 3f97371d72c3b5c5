#pragma once
// The control plane of a store: pools, tables, writers and loans, as one state that commands change
// one after another. It moves no data and never waits; who calls it decides what a refusal means.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "replay/pool.h"
#include "replay/table.h"

namespace tengen::replay {

// A client: all that it has open ends with it.
using SessionId = uint32_t;

struct Insert {
  uint32_t table = 0;
  uint64_t sequence = 0;  // the writer's own, increasing
  uint64_t first = 0;     // step of the writer's stream
  uint32_t num_steps = 0;
  double priority = 1.0;
  uint32_t version = 0;
};

enum class InsertResult {
  kInserted,
  kKnown,    // a sequence that was inserted before: nothing to do
  kBlocked,  // the rate limiter says not yet
};

// B samples that a consumer has until it acknowledges them.
struct Loan {
  uint64_t lease = 0;
  uint64_t table_size = 0;      // when they were drawn
  std::vector<Sample> samples;  // of the table's num_steps each
  std::vector<Piece> pieces;    // of all samples, one after another
};

// Not thread-safe. Every call costs a time that depends on its own arguments alone. Errors change
// nothing.
class Engine {
 public:
  // `memory` outlives the engine.
  Engine(Memory* memory, uint64_t seed) : memory_(memory), seed_(seed) {}

  uint32_t add_pool(Schema schema);
  // A table of steps of a pool. Throws Error for a config that is refused or a name that is taken.
  uint32_t add_table(TableConfig config, uint32_t pool);
  // None where there is no such table.
  std::optional<uint32_t> find_table(const std::string& name) const;
  Table& table(uint32_t number) { return *tables_[number].table; }
  const Table& table(uint32_t number) const { return *tables_[number].table; }
  uint32_t pool_of(uint32_t table) const { return tables_[table].pool; }
  uint32_t num_tables() const { return static_cast<uint32_t>(tables_.size()); }
  uint32_t num_pools() const { return static_cast<uint32_t>(pools_.size()); }
  const Pool& pool(uint32_t number) const { return *pools_[number]; }

  SessionId begin_session() { return next_session_++; }
  // Closes its writers, takes back the slots that they had not filled, and gives back every use of
  // its loans.
  void end_session(SessionId session);

  struct OpenedWriter {
    uint32_t writer;
    uint64_t next_sequence;  // what is below was inserted
  };
  bool is_writer_open(const std::string& name) const { return open_names_.count(name) != 0; }
  // Throws Error where another session has a writer of that name.
  OpenedWriter open_writer(SessionId session, const std::string& name, uint32_t pool);
  // The memory of the writer's next chunk, or none where writers and loans hold all of it. Items
  // make room, those that the removers of the pool's tables choose.
  std::optional<uint32_t> grant(uint32_t writer);
  uint32_t pool_of_writer(uint32_t writer) const { return writers_[writer].pool; }
  // The writer's next chunk lies in a slot that it was granted.
  void append(uint32_t writer, uint32_t slot);
  // Throws Error where the steps are not there or the table refuses the item.
  InsertResult insert(uint32_t writer, const Insert& insert);
  // The writer names no step before `first` any more.
  void release_before(uint32_t writer, uint64_t first);
  void close_writer(uint32_t writer);

  // B samples, or false where the rate limiter allows fewer; `loan` is then as it was.
  bool sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan);
  // The samples were used. `priorities` is empty, or has one for each. Throws Error for a lease
  // that the session has not, or another number of priorities.
  void ack(SessionId session, uint64_t lease, std::span<const double> priorities);
  // They were not.
  void give_back(SessionId session, uint64_t lease);

  // What an insert, or so many samples, wait for, for people; empty where they do not.
  std::string insert_waits(uint32_t table) const;
  std::string sample_waits(uint32_t table, uint32_t num_samples) const;

 private:
  struct TableEntry {
    std::unique_ptr<Table> table;
    uint32_t pool;
  };
  struct Writer {
    std::string name;
    SessionId session = 0;
    uint32_t pool = 0;
    uint32_t stream = 0;
    bool is_open = false;
    std::vector<uint32_t> granted;  // slots not appended yet
  };
  struct Lent {
    SessionId session;
    uint32_t table;
    std::vector<int64_t> keys;
    std::vector<StepRange> steps;
  };
  using Loans = std::map<uint64_t, Lent>;  // by lease

  Writer& open_writer_of(uint32_t writer);
  // Throws Error for a lease that the session has not.
  Loans::iterator find_loan(SessionId session, uint64_t lease);
  // Lets go of its steps and forgets it; returns the next one.
  Loans::iterator end_loan(Loans::iterator loan);
  bool make_room(uint32_t pool);

  Memory* const memory_;
  const uint64_t seed_;
  std::vector<std::unique_ptr<Pool>> pools_;
  std::vector<TableEntry> tables_;
  SessionId next_session_ = 0;
  std::vector<Writer> writers_;
  std::vector<uint32_t> free_writers_;
  std::unordered_map<std::string, uint64_t> next_sequences_;  // by writer's name
  std::unordered_map<std::string, uint32_t> open_names_;
  Loans loans_;
  uint64_t next_lease_ = 0;
};

}  // namespace tengen::replay
