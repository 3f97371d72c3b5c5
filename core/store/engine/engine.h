#pragma once
// The control plane of a store: pools, tables, writers and loans, as one state that commands change
// one after another. It moves no data and never waits; who calls it decides what a refusal means.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/engine/log.h"
#include "store/engine/pool.h"
#include "store/engine/state.h"
#include "store/engine/table.h"

namespace tengen::store::engine {

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

// What became of a loan that was drawn.
enum class Collected {
  kNotYet,  // steps of it are on their way from disk
  kReady,
  kLost,  // steps of it could not be read: it was given back, and the items that have them are gone
};

// B samples that a consumer has until it acknowledges them.
struct Loan {
  SessionId session = 0;
  uint64_t lease = 0;
  uint64_t table_size = 0;      // when they were drawn
  std::vector<Sample> samples;  // of the table's num_steps each
  std::vector<Piece> pieces;    // of all samples and their context, one after another
  bool is_ready = false;        // else the pieces come with collect()
};

// Steps of a chunk that is not on disk, which items name.
struct OpenSteps {
  uint32_t pool = 0;
  uint32_t chunk = 0;
  uint32_t slot = 0;
  uint32_t first = 0;  // in the chunk
  uint32_t count = 0;
};

// What one call does at most to many items, so that nobody waits long for its end.
constexpr uint64_t kMaxAtOnce = 1000;

// Not thread-safe. Every call costs a time that depends on its own arguments alone. Errors change
// nothing.
class Engine {
 public:
  // `memory` outlives the engine, and so does `log`, which learns of every change; null: nobody
  // does. So does `disk`, on which chunks lie that memory cannot hold; null: there is none.
  Engine(Memory* memory, uint64_t seed, Log* log = nullptr, Disk* disk = nullptr)
      : memory_(memory), seed_(seed), log_(log), disk_(disk) {}

  // Throws Error where the budgets are too small for its chunks.
  uint32_t add_pool(Schema schema);
  // A table of steps of a pool. Throws Error for a config that is refused, a name that is taken, or
  // samples that memory cannot hold.
  uint32_t add_table(TableConfig config, uint32_t pool);
  // None where there is no such table.
  std::optional<uint32_t> find_table(const std::string& name) const;
  Table& table(uint32_t number) { return *tables_[number].table; }
  const Table& table(uint32_t number) const { return *tables_[number].table; }
  uint32_t pool_of(uint32_t table) const { return tables_[table].pool; }
  uint32_t num_tables() const { return static_cast<uint32_t>(tables_.size()); }
  uint32_t num_pools() const { return static_cast<uint32_t>(pools_.size()); }
  const Pool& pool(uint32_t number) const { return *pools_[number]; }

  // Goes on as the engine whose log made the state, in whose order pools and tables were added.
  // Nothing of it is logged, but where steps lie for which there was no memory. Precondition: no
  // session began yet. Throws Error where the tables are
  // others, or slabs are gone.
  void restore(const State& state);

  SessionId begin_session();
  // For the log alone: how a session goes on with another server, and where it stands.
  void describe_session(SessionId session, std::span<const std::byte> description);
  void note_progress(SessionId session, const SessionProgress& progress);
  // Closes its writers, takes back the slots that they had not filled, and gives back the uses of
  // its loans: some of them a call. Whether it is to be called again.
  bool end_session(SessionId session);

  struct OpenedWriter {
    uint32_t writer;
    uint64_t next_sequence;  // what is below was inserted
  };
  bool is_writer_open(const std::string& name) const { return open_names_.count(name) != 0; }
  // Throws Error where another session has a writer of that name.
  OpenedWriter open_writer(SessionId session, const std::string& name, uint32_t pool);
  // The memory of the writer's next chunk, or none where writers and loans hold all of it. Items
  // make room, those that the removers of the pool's tables choose: some of them a call, so that it
  // is to be called again where it has none; at once where it is making room, and else now and
  // then, also if nothing else changes.
  std::optional<uint32_t> grant(uint32_t writer);
  bool is_making_room(uint32_t writer) const { return writers_[writer].num_removed > 0; }
  // Items that made room for writers, of all that were granted.
  uint64_t num_removed() const { return num_removed_; }
  uint32_t pool_of_writer(uint32_t writer) const { return writers_[writer].pool; }
  // How many slots it was granted and has not appended.
  uint64_t num_granted(uint32_t writer) const { return writers_[writer].granted.size(); }
  // The writer's next chunk lies in a slot that it was granted.
  void append(uint32_t writer, uint32_t slot);
  // Throws Error where the steps are not there or the table refuses the item.
  InsertResult insert(uint32_t writer, const Insert& insert);
  // The writer names no step before `first` any more.
  void release_before(uint32_t writer, uint64_t first);
  void close_writer(uint32_t writer);

  // Batches of so many samples will be drawn. Throws Error where memory can never hold one.
  void expect(uint32_t table, uint32_t num_samples);
  // B samples, or false where the rate limiter allows fewer, or there is no memory to bring those
  // in that were drawn before; `loan` is then as it was. Without a disk it is ready at once.
  bool sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan);
  // Fills in the pieces of a loan that is not ready. Throws Error where it is lost and the disk's
  // owner refuses damage; then the items stay.
  Collected collect(Loan* loan);
  // A transfer of the disk's tier has ended. Whether anybody who waits may go on by it.
  bool loaded(uint32_t pool, uint32_t chunk, const TransferResult& result);
  bool saved(uint32_t pool, uint32_t chunk, const TransferResult& result);
  // A checkpoint of a store with a disk begins: what is complete goes there. Returns the steps that
  // came since the last one and are in no complete chunk, which the caller must keep itself.
  std::vector<OpenSteps> begin_checkpoint();
  enum class Checkpoint { kUnderWay, kSaved, kStuck };
  // kStuck: the disk has no place for the rest.
  Checkpoint checkpoint_state() const;
  // Where chunks lie that were saved since it began.
  std::vector<event::ChunkSaved> saved_of_checkpoint() const;
  // All steps of the chunks that are not saved, as the disk has no place for them; the caller must
  // keep them itself.
  std::vector<OpenSteps> rest_of_checkpoint() const;
  // What it names is kept, and what the one before named alone may be overwritten.
  void end_checkpoint();
  // Whether anybody waits for the next one, as rows are free only then.
  bool wants_checkpoint() const;
  // There will be none any more: rows that the last one names are used again where the disk has no
  // other room.
  void give_up_checkpoints();
  // Items that are gone as their steps could not be read.
  uint64_t num_damaged(uint32_t table) const { return tables_[table].num_damaged; }
  // Of loans that became ready since the engine is there; without a disk nothing is counted.
  const ChunkReads& chunk_reads(uint32_t table) const { return tables_[table].reads; }

  // The samples were used. `priorities` is empty, or has one for each. Throws Error for a lease
  // that the session has not, or another number of priorities.
  void ack(SessionId session, uint64_t lease, std::span<const double> priorities);
  // They were not.
  void give_back(SessionId session, uint64_t lease);
  // Those of the session that are neither, by a scan of them.
  uint64_t num_loans(SessionId session) const;
  bool has_excess() const {
    return std::any_of(tables_.begin(), tables_.end(),
                       [](const TableEntry& entry) { return entry.table->has_excess(); });
  }
  // Removes some of the items that a smaller capacity or a newer version has no place for, a
  // bounded number a table; whether there were any.
  bool remove_excess();
  // The session looks at the samples' steps where they lie: they stay when the lease ends, until
  // let_go(). Throws Error for a lease that the session has not.
  void keep(SessionId session, uint64_t lease);
  // It does so no more. One that is not kept is left out.
  void let_go(SessionId session, uint64_t lease);

  // What an insert, or so many samples, wait for, for people; empty where they do not.
  std::string insert_waits(uint32_t table) const;
  std::string sample_waits(uint32_t table, uint32_t num_samples) const;
  // What a writer that is granted nothing waits for.
  std::string grant_waits(uint32_t writer) const;

 private:
  struct TableEntry {
    std::unique_ptr<Table> table;
    uint32_t pool;
    uint64_t num_damaged = 0;
    ChunkReads reads;
  };
  struct Writer {
    std::string name;
    SessionId session = 0;
    uint32_t pool = 0;
    uint32_t stream = 0;
    bool is_open = false;
    std::vector<uint32_t> granted;  // chunks not appended yet
    uint64_t named_end = 0;         // behind the last step that an item names
    uint64_t kept_end = 0;          // behind those that the last checkpoint told of
    uint64_t num_removed = 0;       // items, for the chunk that it is to be granted
  };
  struct Lent {
    uint32_t table;
    std::vector<int64_t> keys;
    std::vector<StepRange> steps;
    bool is_kept = false;
  };
  using Loans = std::map<std::pair<SessionId, uint64_t>, Lent>;  // by session and lease

  Writer& open_writer_of(uint32_t writer);
  // Throws Error for a lease that the session has not.
  Loans::iterator find_loan(SessionId session, uint64_t lease);
  // The session's first one, or the end.
  static Loans::iterator first_of(Loans* loans, SessionId session);
  // Forgets it and lets go of its steps, unless they are kept.
  void end_loan(Loans::iterator loan);
  void drop_steps(Loans* loans, Loans::iterator loan);
  // The steps of a loan that was ready stay in memory until it ends.
  void resume_fetch(uint64_t lease, const Lent& lent);
  // Of open writers: what items name.
  void restore_named_ends(const State& state);
  // Steps of it cannot be read.
  void lose(Loans::iterator drawn);
  void end_writer(uint32_t writer);
  bool make_room(uint32_t pool);
  // How often that is done before whoever needs the room waits.
  uint64_t max_removed(uint32_t pool) const;
  // Starts what the disk of a pool can do now.
  void advance(uint32_t pool);
  uint64_t max_chunks_of(uint32_t table, uint64_t num_samples) const;
  void check_memory() const;

  Memory* const memory_;
  const uint64_t seed_;
  Log* const log_;
  Disk* const disk_;
  std::vector<std::unique_ptr<Pool>> pools_;
  std::vector<TableEntry> tables_;
  SessionId next_session_ = 0;
  std::vector<Writer> writers_;
  std::vector<uint32_t> free_writers_;
  std::unordered_map<std::string, uint64_t> next_sequences_;  // by writer's name
  std::unordered_map<std::string, uint32_t> open_names_;
  Loans drawn_;  // those that are not ready
  Loans loans_;
  Loans kept_;  // those that are over, whose steps are looked at
  uint64_t next_lease_ = 0;
  uint64_t num_removed_ = 0;
};

}  // namespace tengen::store::engine
