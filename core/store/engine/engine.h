#pragma once
// The control plane of a store: one state with pools, tables, writers and loans, changed by one
// command at a time. The engine moves no data and never waits; callers handle refusals.

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

// Identifies a client; its writers and loans end with its session.
using SessionId = uint32_t;

struct Insert {
  uint32_t table = 0;
  uint64_t sequence = 0;  // increases from one insert of the writer to the next
  uint64_t first = 0;     // first step, as an index in the writer's stream
  uint32_t num_steps = 0;
  double priority = 1.0;
};

enum class InsertResult {
  kInserted,
  kKnown,    // the writer has already inserted an item with this sequence number
  kBlocked,  // the rate limiter does not allow the insert yet
  // items were removed, but too few for the new item: retry after other callers' turns
  kMakingRoom,
};

// The state of a sampled loan.
enum class Collected {
  kNotYet,  // some steps are still being read from disk
  kReady,
  // some steps could not be read; the loan was given back, and the items with these steps removed
  kLost,
};

// Samples that a consumer holds until it acknowledges them.
struct Loan {
  SessionId session = 0;
  uint64_t lease = 0;
  uint64_t table_size = 0;      // number of items in the table when the loan was sampled
  std::vector<Sample> samples;  // each with the num_steps of the table's config
  std::vector<Piece> pieces;    // pieces of all samples, in order
  bool is_ready = false;        // if false, collect() fills in the pieces
};

// Steps of a chunk that belong to items and are not on disk.
struct OpenSteps {
  uint32_t pool = 0;
  uint32_t chunk = 0;
  uint32_t slot = 0;
  uint32_t first = 0;  // index in the chunk
  uint32_t count = 0;
};

// The text of an error about a second writer with an open name: the rule, and the advice.
constexpr const char* kNameIsTaken = "is open in another client; use another name";

// The maximum number of closed writer names whose next sequence numbers the engine remembers, and
// the maximum bytes of a name. Both bound the size of memory and of every state.
constexpr uint64_t kMaxNames = 1 << 16;
constexpr uint64_t kMaxNameBytes = 256;

// Throws Error if `name` is too long. `what` is the kind of name.
inline void check_name_bytes(const char* what, const std::string& name) {
  check(name.size() <= kMaxNameBytes, what, std::to_string(name.size()) + " bytes of name",
        "must have a name of at most 256 bytes; shorten it");
}

// Throws Error for an invalid writer name.
inline void check_writer_name(const std::string& name) {
  check(!name.empty(), "writer", "''", "must have a name of at least one byte; give it one");
  check_name_bytes("writer", name);
}

// Executes the commands of a store. Not thread-safe. A call takes time proportional to its
// arguments and to the chunks of the items that it inserts, samples or removes; num_touched()
// counts both. A call scans only if its comment says so, or if it opens or ends a session. A call
// that throws Error changes nothing, except that items may have been removed to make room, and that
// collect() may have ended a lost loan.
class Engine {
 public:
  // `memory`, `log` and `disk` must outlive the engine. `log` records every change; null records
  // nothing. `disk` holds the chunks that do not fit in memory; null means no disk.
  Engine(Memory* memory, uint64_t seed, Log* log = nullptr, Disk* disk = nullptr)
      : memory_(memory), seed_(seed), log_(log), disk_(disk) {}
  Engine(const Engine&) = delete;  // pools hold pointers into the engine

  // Adds a pool. Returns its index. Throws Error if a budget is too small for its chunks.
  uint32_t add_pool(Schema schema);
  // Adds a table for steps of `pool`. Returns its index. Throws Error if the config is invalid, the
  // name is taken, or memory cannot hold the samples.
  uint32_t add_table(TableConfig config, uint32_t pool);
  // Returns the index of the table `name`, or none if there is no table with that name.
  std::optional<uint32_t> find_table(const std::string& name) const;
  Table& table(uint32_t number) { return *tables_[number].table; }
  const Table& table(uint32_t number) const { return *tables_[number].table; }
  uint32_t pool_of(uint32_t table) const { return tables_[table].pool; }
  uint32_t num_tables() const { return static_cast<uint32_t>(tables_.size()); }
  uint32_t num_pools() const { return static_cast<uint32_t>(pools_.size()); }
  const Pool& pool(uint32_t number) const { return *pools_[number]; }

  // Continues from the state that another engine's log describes. Logs nothing except new slots for
  // steps that were not in memory. Precondition: pools and tables were added in the same order as
  // in that engine, and no session has begun. Throws Error if the tables differ, slabs are missing,
  // or the state is impossible.
  void restore(const State& state);

  SessionId begin_session();
  // Log the description from which a server can resume the session, and its progress.
  void describe_session(SessionId session, std::span<const std::byte> description);
  void note_progress(SessionId session, const SessionProgress& progress);
  // Closes the session's writers, takes back granted slots that are not filled, and gives back the
  // session's loans, a bounded number per call. Returns whether another call is needed.
  bool end_session(SessionId session);

  struct OpenedWriter {
    SessionId session = 0;
    uint32_t writer = 0;
    uint64_t next_sequence = 0;  // inserts with smaller sequence numbers have been made
  };
  bool is_writer_open(const std::string& name) const { return open_names_.count(name) != 0; }
  // Throws Error if the name is invalid or another session has a writer with that name. The engine
  // remembers the next sequence numbers of open names and of the kMaxNames names that were closed
  // last. A restart loses the order of closing, so the engine may then forget any of the restored
  // names first. A writer with a forgotten or new name begins at 0.
  OpenedWriter open_writer(SessionId session, const std::string& name, uint32_t pool);
  // Returns the slot of the writer's next chunk, or none. If memory is full, removes items that the
  // removers of the pool's tables choose, a bounded number per call. After none, the caller
  // retries: immediately if is_making_room(), else from time to time, even if nothing has changed.
  std::optional<uint32_t> grant(uint32_t writer);
  bool is_making_room(uint32_t writer) const { return writers_[writer].num_removed > 0; }
  // The number of items that have been removed to make room for writers.
  uint64_t num_removed() const { return num_removed_; }
  uint64_t num_writers() const { return open_names_.size(); }
  uint32_t pool_of_writer(uint32_t writer) const { return writers_[writer].pool; }
  // The number of slots that were granted to the writer and not appended yet.
  uint64_t num_granted(uint32_t writer) const { return writers_[writer].granted.size(); }
  // Appends the writer's next chunk, which lies in a slot that was granted to the writer.
  void append(uint32_t writer, uint32_t slot);
  // Inserts an item. Throws Error if its steps do not exist or the table refuses it.
  InsertResult insert(uint32_t writer, const Insert& insert);
  // Declares that later inserts of the writer will use no step before `first`.
  void release_before(uint32_t writer, uint64_t first);
  void close_writer(uint32_t writer);

  // Throws Error if `num_samples` is too large for a batch, or if memory could not hold one batch:
  // its steps, even if they are stored elsewhere, and its index.
  void check_batch(uint32_t table, uint32_t num_samples) const;
  // Announces that the session will sample batches of `num_samples` until it ends. Memory is
  // reserved for the largest batch of all sessions. Precondition: check_batch().
  void expect(SessionId session, uint32_t table, uint32_t num_samples);
  // Samples a batch into `loan`. Returns false, with `loan` unchanged, if the rate limiter allows
  // fewer samples or an earlier loan waits for memory. Without a disk, it is ready immediately.
  bool sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan);
  // Fills in the pieces of a loan that was not ready when it was sampled.
  Collected collect(Loan* loan);
  // Report that the disk's tier has ended a load or a save; advance() must follow. Return whether a
  // waiting caller may continue.
  bool loaded(uint32_t pool, uint32_t chunk, const TransferResult& result);
  bool saved(uint32_t pool, uint32_t chunk, const TransferResult& result);
  // Starts the transfers that a pool's disk can do now. If it throws bad_alloc, call it again.
  void advance(uint32_t pool);
  // Reports that the disk has space again after it was full.
  void regain_room();
  // Sets the reason why no checkpoint can be made now, or an empty string.
  void set_checkpoint_trouble(std::string trouble) { checkpoint_trouble_ = std::move(trouble); }
  // Begins a checkpoint of a store with a disk: complete chunks are saved to disk. Returns the
  // steps that incomplete chunks have received since the last checkpoint. The caller must store
  // these steps, and then call note_open_steps_kept(); otherwise the next checkpoint returns them
  // again.
  std::vector<OpenSteps> begin_checkpoint();
  void note_open_steps_kept();
  enum class Checkpoint { kUnderWay, kSaved, kStuck };
  // kStuck: the disk has no free row for the remaining chunks.
  Checkpoint checkpoint_state() const;
  // Returns the rows of the chunks that have been saved since the checkpoint began.
  std::vector<event::ChunkSaved> saved_of_checkpoint() const;
  // Returns all steps of chunks for which the disk has no free row. The caller must store them.
  std::vector<OpenSteps> rest_of_checkpoint() const;
  // Reports that the checkpoint is complete: rows that it refers to are preserved, and rows that
  // only the previous checkpoint refers to may be overwritten.
  void end_checkpoint();
  // Returns whether a caller is waiting for rows on disk that only the next checkpoint frees.
  bool wants_checkpoint() const;
  // Reports that no more checkpoints will be made. Rows of the last checkpoint may then be
  // overwritten if the disk has no other space.
  void give_up_checkpoints();
  // The number of items that were removed because their steps could not be read.
  uint64_t num_damaged(uint32_t table) const { return tables_[table].num_damaged; }
  // Counts of the loans that became ready. Without a disk, nothing is counted.
  const ChunkReads& chunk_reads(uint32_t table) const { return tables_[table].reads; }

  // Acknowledges that the samples of the loan `lease` were used. `priorities` is empty or has one
  // entry per sample. Throws Error if the lease or the number of priorities is wrong.
  void ack(SessionId session, uint64_t lease, std::span<const double> priorities);
  // Gives back the unused samples of the loan `lease`.
  void give_back(SessionId session, uint64_t lease);
  // Whether a sampler that holds `num_loans` loans may sample one more. It may not if its table's
  // max_loans is reached, or if the lists of all loans in the store would exceed batch_bytes(). The
  // lists of one sampler may only be as long as the space that then remains for others, so that a
  // later sampler finds space.
  bool may_lend(uint32_t table, uint32_t num_samples, uint64_t num_loans) const;
  // The total cost of all calls: items inserted, sampled, acknowledged and given back, and the
  // chunks of these items and of removed items.
  uint64_t num_touched() const { return num_touched_; }
  // Returns the number of the session's loans that have not ended. Scans these loans.
  uint64_t num_loans(SessionId session) const;

  // Return a human-readable reason why an insert or a batch must wait, or an empty string.
  std::string insert_waits(uint32_t table) const;
  std::string sample_waits(uint32_t table, uint32_t num_samples) const;
  // Returns a human-readable reason why grant() returned no slot for the writer.
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
    std::vector<uint32_t> granted;  // granted chunks that are not appended yet
    uint64_t named_end = 0;         // index after the last step that belongs to an item
    uint64_t kept_end = 0;          // index after the last step that a checkpoint has stored
    uint64_t num_removed = 0;  // items removed to make room for the chunk that the writer waits for
  };
  struct Lent : SavedLoan {
    bool is_out = true;  // whether the client has the loan; false while its steps are being loaded
  };
  using Loans = std::map<std::pair<SessionId, uint64_t>, Lent>;  // by session and lease

  Writer& open_writer_of(uint32_t writer);
  // Throws Error if the session has no such lease.
  Loans::iterator find_loan(SessionId session, uint64_t lease);
  // Removes a loan and releases its steps.
  void end_loan(Loans::iterator loan);
  void note_lent(uint64_t lease, const Lent& lent);
  void restore_loan(const SavedLoan& saved, uint64_t lease);
  // Throws Error if a store with these tables cannot have this state.
  void check_restorable(const State& state) const;
  void check_loans(const State& state) const;
  // Restores `named_end` of the open writers from a saved state.
  void restore_named_ends(const State& state);
  // Ends a loan with unreadable steps, and removes the items of these steps.
  void lose(Loans::iterator drawn);
  void end_writer(uint32_t writer);
  bool has_empty_chunk(const Writer& w) const;
  // Marks a name as closed, and forgets a bounded number of other names if there are too many.
  void close_name(const std::string& name);
  bool make_room(uint32_t pool);
  // The maximum number of items removed in vain before a caller that needs a chunk must wait.
  uint64_t max_removed(uint32_t pool) const;
  // The maximum bytes of one batch, which is also the maximum of the lists of all loans together.
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
    uint64_t closed_at = 0;  // the key in closed_names_; 0 while the name is open
  };
  std::unordered_map<std::string, Name> names_;          // by writer name
  std::map<uint64_t, const std::string*> closed_names_;  // in the order of closing
  uint64_t num_closed_ = 0;
  std::unordered_map<std::string, uint32_t> open_names_;
  Loans loans_;
  uint64_t loan_bytes_ = 0;  // bytes of the lists in loans_
  uint64_t num_touched_ = 0;
  uint64_t next_lease_ = 0;
  std::string checkpoint_trouble_;
  std::string disk_trouble_;  // while the disk is full, the reason why a row could not be written
  uint64_t num_removed_ = 0;
};

}  // namespace tengen::store::engine
