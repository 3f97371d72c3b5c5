#pragma once
// The control plane of a store: pools, tables, writers and loans, as one state that commands change
// one after another. The engine moves no data and never waits; its caller decides what to do where
// it refuses.

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

#include "base/error.h"
#include "store/state/log.h"
#include "store/state/state.h"
#include "store/steps/pool.h"
#include "store/tables/table.h"

namespace tengen::store::engine {

// A client; its writers and loans end with its session.
using SessionId = uint32_t;

struct Insert {
  uint32_t table = 0;
  uint64_t sequence = 0;  // numbers the writer's inserts, increasing
  uint64_t first = 0;     // counted in the writer's stream
  uint32_t num_steps = 0;
  double priority = 1.0;
};

enum class InsertResult {
  kInserted,
  kKnown,    // the writer inserted this sequence before: nothing to do
  kBlocked,  // the rate limiter does not allow it yet
  // items were removed, and others must be before it fits: try again once others had their turn
  kMakingRoom,
};

// What became of a loan that was drawn.
enum class Collected {
  kNotYet,  // some steps are on their way from disk
  kReady,
  // some steps could not be read: the loan was given back, and the items with these steps were
  // removed
  kLost,
};

// B samples that a consumer has until it acknowledges them.
struct Loan {
  SessionId session = 0;
  uint64_t lease = 0;
  uint64_t table_size = 0;      // when they were drawn
  std::vector<Sample> samples;  // of the table's num_steps each
  std::vector<Piece> pieces;    // of all samples, one after another
  bool is_ready = false;        // where not, collect() fills in the pieces
};

// Steps that items name, of a chunk that is not on disk.
struct OpenSteps {
  uint32_t pool = 0;
  uint32_t chunk = 0;
  uint32_t slot = 0;
  uint32_t first = 0;  // in the chunk
  uint32_t count = 0;
};

// The rule that a second writer of a name breaks, and what to do.
constexpr const char* kNameIsTaken = "is open in another client; give each a name of its own";

// The most closed names of writers whose next sequences the engine remembers, and the most bytes of
// a name. Memory and every state hold them.
constexpr uint64_t kMaxNames = 1 << 16;
constexpr uint64_t kMaxNameBytes = 256;

// Throws Error for a name that is too long.
inline void check_name_bytes(const char* what, const std::string& name) {
  check(name.size() <= kMaxNameBytes, what, std::to_string(name.size()) + " bytes of name",
        "must have a name of at most 256 bytes; shorten it");
}

// Throws Error for a name that no writer can have.
inline void check_writer_name(const std::string& name) {
  check(!name.empty(), "writer", "''", "must have a name of at least one byte; give it one");
  check_name_bytes("writer", name);
}

// Not thread-safe. The cost of a call depends on its arguments, and on the chunks of the items that
// it names or removes; num_touched() counts both. Calls that say so, or that open or end a session,
// scan. A call that throws Error changes nothing, but for items that made room, and a loan that
// collect() says is lost.
class Engine {
 public:
  // `memory`, `log` and `disk` outlive the engine. `log` records every change; null: none is
  // recorded. `disk` holds the chunks that memory cannot hold; null: there is no disk.
  Engine(Memory* memory, uint64_t seed, Log* log = nullptr, Disk* disk = nullptr)
      : memory_(memory), seed_(seed), log_(log), disk_(disk) {}
  Engine(const Engine&) = delete;  // pools count into it

  // Adds a pool. Throws Error where a budget is too small for its chunks.
  uint32_t add_pool(Schema schema);
  // Adds a table of steps of a pool. Throws Error for a config that is refused, a name that is
  // taken, or samples that memory cannot hold.
  uint32_t add_table(TableConfig config, uint32_t pool);
  // None where there is no such table.
  std::optional<uint32_t> find_table(const std::string& name) const;
  Table& table(uint32_t number) { return *tables_[number].table; }
  const Table& table(uint32_t number) const { return *tables_[number].table; }
  uint32_t pool_of(uint32_t table) const { return tables_[table].pool; }
  uint32_t num_tables() const { return static_cast<uint32_t>(tables_.size()); }
  uint32_t num_pools() const { return static_cast<uint32_t>(pools_.size()); }
  const Pool& pool(uint32_t number) const { return *pools_[number]; }

  // Goes on as the engine whose log made the state. Logs nothing, except where steps lie that had
  // no memory. Precondition: pools and tables were added in the order of that engine, and no
  // session began yet. Throws Error where the tables are others, or slabs are gone, or the
  // state is none that a store can have.
  void restore(const State& state);

  SessionId begin_session();
  // Only records, for another server that goes on with the session, how it does and where the
  // session stands.
  void describe_session(SessionId session, std::span<const std::byte> description);
  void note_progress(SessionId session, const SessionProgress& progress);
  // Closes the session's writers, takes back the slots that they had not filled, and gives back its
  // loans, a bounded number a call. Returns whether it must be called again.
  bool end_session(SessionId session);

  struct OpenedWriter {
    SessionId session = 0;
    uint32_t writer = 0;
    uint64_t next_sequence = 0;  // inserts with smaller numbers were made
  };
  bool is_writer_open(const std::string& name) const { return open_names_.count(name) != 0; }
  // Throws Error if another session has a writer of that name, or check_writer_name() does. The
  // engine remembers the next sequences of open names and of the kMaxNames names that were closed
  // last. A restart loses the order in which they were closed, so that any of them may be forgotten
  // first. A writer of a forgotten or new name begins at 0.
  OpenedWriter open_writer(SessionId session, const std::string& name, uint32_t pool);
  // Returns the slot of the writer's next chunk, or none. If memory is full, it removes items that
  // the removers of the pool's tables choose, a bounded number a call. A caller that got none calls
  // again: at once while is_making_room(), else now and then, even if nothing else has changed.
  std::optional<uint32_t> grant(uint32_t writer);
  bool is_making_room(uint32_t writer) const { return writers_[writer].num_removed > 0; }
  // How many items were removed to make room for writers.
  uint64_t num_removed() const { return num_removed_; }
  uint64_t num_writers() const { return open_names_.size(); }
  uint32_t pool_of_writer(uint32_t writer) const { return writers_[writer].pool; }
  // How many slots the writer was granted and has not appended.
  uint64_t num_granted(uint32_t writer) const { return writers_[writer].granted.size(); }
  // Appends the writer's next chunk, which lies in a slot that the writer was granted.
  void append(uint32_t writer, uint32_t slot);
  // Inserts an item. Throws Error where its steps are not there or the table refuses it.
  InsertResult insert(uint32_t writer, const Insert& insert);
  // Says that the writer will name no step before `first`.
  void release_before(uint32_t writer, uint64_t first);
  void close_writer(uint32_t writer);

  // Throws Error where `num_samples` are too many for a batch, or memory could not hold one: its
  // steps, even where they lie elsewhere in the end, and its index.
  void check_batch(uint32_t table, uint32_t num_samples) const;
  // Says that the session will draw batches of `num_samples`, until it ends. Memory has room for
  // the largest batch of all sessions. Precondition: check_batch().
  void expect(SessionId session, uint32_t table, uint32_t num_samples);
  // Draws a loan. Returns false, and leaves `loan` unchanged, where the rate limiter allows fewer
  // samples, or an earlier loan still waits for memory. Without a disk the loan is ready at once.
  bool sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan);
  // Fills in the pieces of a loan that is not ready.
  Collected collect(Loan* loan);
  // Says that a load, or a save, of the disk's tier has ended; advance() must follow. Returns
  // whether a waiting caller may now go on.
  bool loaded(uint32_t pool, uint32_t chunk, const TransferResult& result);
  bool saved(uint32_t pool, uint32_t chunk, const TransferResult& result);
  // Starts the transfers that a pool's disk can do now. Where it throws bad_alloc, call it again.
  void advance(uint32_t pool);
  // Says that the disk has room again, where it had none.
  void regain_room();
  // Says why no checkpoint can be made now; empty: one can.
  void set_checkpoint_trouble(std::string trouble) { checkpoint_trouble_ = std::move(trouble); }
  // Begins a checkpoint of a store with a disk: complete chunks are saved to it. Returns the steps
  // that were added since the last checkpoint and are in no complete chunk. The caller must keep
  // these itself, and says so when it has; the next checkpoint returns them again where it has not.
  std::vector<OpenSteps> begin_checkpoint();
  void note_open_steps_kept();
  enum class Checkpoint { kUnderWay, kSaved, kStuck };
  // kStuck: the disk has no place for the rest of the chunks.
  Checkpoint checkpoint_state() const;
  // Where the chunks lie that were saved since the checkpoint began.
  std::vector<event::ChunkSaved> saved_of_checkpoint() const;
  // All steps of chunks that the disk has no place for; the caller must keep these itself.
  std::vector<OpenSteps> rest_of_checkpoint() const;
  // Says that the checkpoint is made: rows that it names are kept, and rows that only the
  // checkpoint before named may be overwritten.
  void end_checkpoint();
  // Whether a caller waits for rows that only the next checkpoint frees.
  bool wants_checkpoint() const;
  // Says that no more checkpoints are made: rows that the last one names are overwritten where the
  // disk has no other room.
  void give_up_checkpoints();
  // How many items were removed because their steps could not be read.
  uint64_t num_damaged(uint32_t table) const { return tables_[table].num_damaged; }
  // Counts of the loans that became ready; without a disk nothing is counted.
  const ChunkReads& chunk_reads(uint32_t table) const { return tables_[table].reads; }

  // Says that the samples were used. `priorities` is empty, or has one for each sample. Throws
  // Error for a lease that the session does not have, or another number of priorities.
  void ack(SessionId session, uint64_t lease, std::span<const double> priorities);
  // Says that the samples were not used.
  void give_back(SessionId session, uint64_t lease);
  // Whether a sampler that has `num_loans` may draw one more: as its table says, and as far as the
  // lists of all loans of the store stay below batch_bytes(). One sampler's may be as long as what
  // would then be left for others, so that one that comes late finds room.
  bool may_lend(uint32_t table, uint32_t num_samples, uint64_t num_loans) const;
  // What calls have cost: the items that they inserted, drew, acknowledged and gave back, and the
  // chunks that these and removed items held.
  uint64_t num_touched() const { return num_touched_; }
  // How many of the session's loans are neither acknowledged nor given back. Scans them.
  uint64_t num_loans(SessionId session) const;

  // What an insert, or a draw of `num_samples`, waits for, for people; empty where it need not
  // wait.
  std::string insert_waits(uint32_t table) const;
  std::string sample_waits(uint32_t table, uint32_t num_samples) const;
  // What a writer that was granted no slot waits for, for people.
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
    uint64_t named_end = 0;         // one past the last step that an item names
    uint64_t kept_end = 0;          // one past the last step that a checkpoint kept
    uint64_t num_removed = 0;       // items removed for the chunk that it waits for
  };
  struct Lent : SavedLoan {
    bool is_out = true;  // false: it is drawn and not ready, and nobody knows of it
  };
  using Loans = std::map<std::pair<SessionId, uint64_t>, Lent>;  // by session and lease

  Writer& open_writer_of(uint32_t writer);
  // Throws Error for a lease that the session has not.
  Loans::iterator find_loan(SessionId session, uint64_t lease);
  // Forgets a loan and lets go of its steps.
  void end_loan(Loans::iterator loan);
  void note_lent(uint64_t lease, const Lent& lent);
  void restore_loan(const SavedLoan& saved, uint64_t lease);
  // Throws Error where a state is no state of a store with these tables.
  void check_restorable(const State& state) const;
  void check_loans(const State& state) const;
  // Restores named_end of open writers.
  void restore_named_ends(const State& state);
  // Ends a drawn loan some of whose steps cannot be read.
  void lose(Loans::iterator drawn);
  void end_writer(uint32_t writer);
  bool has_empty_chunk(const Writer& w) const;
  // Of a name that is not open any more; and forgets a bounded number of others, where these are
  // too many.
  void close_name(const std::string& name);
  bool make_room(uint32_t pool);
  // How often make_room() is called before the caller that needs room must wait.
  uint64_t max_removed(uint32_t pool) const;
  // The most bytes of a batch, and of the lists of all loans.
  uint64_t batch_bytes() const;
  uint64_t sample_bytes(uint32_t table) const;
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
  struct Name {
    uint64_t next_sequence = 0;
    uint64_t closed_at = 0;  // the key in closed_names_; 0: it is open
  };
  std::unordered_map<std::string, Name> names_;          // of writers
  std::map<uint64_t, const std::string*> closed_names_;  // those closed first come first
  uint64_t num_closed_ = 0;
  std::unordered_map<std::string, uint32_t> open_names_;
  Loans loans_;
  uint64_t loan_bytes_ = 0;  // that loans_ lists
  uint64_t num_touched_ = 0;
  uint64_t next_lease_ = 0;
  std::string checkpoint_trouble_;
  std::string disk_trouble_;  // why a row could not be written, while there is no room
  uint64_t num_removed_ = 0;
};

}  // namespace tengen::store::engine
