// The functions of the engine that use a disk.

#include <algorithm>

#include "base/error.h"
#include "store/engine/engine.h"

namespace tengen::store::engine {

namespace {

// The minimum for the bytes of a batch. A batch may exceed the memory of a small store, because it
// may contain the same steps several times.
constexpr uint64_t kLeastBatchBytes = uint64_t{1} << 20;

}  // namespace

void Engine::check_batch(uint32_t table, uint32_t num_samples) const {
  check(num_samples >= 1 && num_samples <= kMaxSamples, "num_samples", num_samples,
        "must be 1 to 65536; request fewer");
  const Pool& pool = *pools_[tables_[table].pool];
  const uint64_t num_bytes = num_samples * sample_bytes(table);
  if (num_bytes > batch_bytes()) {
    throw Error("batch (" + std::to_string(num_samples) + " samples, " + std::to_string(num_bytes) +
                " bytes) must have at most " + std::to_string(batch_bytes()) +
                " bytes, the larger of memory_bytes and 1 MiB; raise memory_bytes, or "
                "request fewer samples");
  }
  if (pool.staging() == nullptr) return;
  const uint64_t num_chunks = max_chunks_of(table, num_samples);
  if (num_chunks >= pool.slots().max_slots()) {
    throw Error("batch (" + std::to_string(num_samples) + " samples, " +
                std::to_string(num_chunks) + " chunks of " +
                std::to_string(pool.slots().slot_bytes()) +
                " bytes) must fit in memory beside a chunk being written, with space for " +
                std::to_string(pool.slots().max_slots()) +
                "; raise memory_bytes, or request fewer samples");
  }
}

void Engine::expect(SessionId session, uint32_t table, uint32_t num_samples) {
  Staging* const staging = pools_[tables_[table].pool]->staging();
  if (staging != nullptr) staging->expect(session, max_chunks_of(table, num_samples));
}

// Whether the writer has a chunk with space for more steps. Used only with a disk.
bool Engine::has_empty_chunk(const Writer& w) const {
  const Pool& pool = *pools_[w.pool];
  if (!w.granted.empty() || pool.staging() == nullptr) return true;
  const std::optional<uint32_t> last = pool.streams().last(w.stream);
  return last && pool.staging()->residence().is_open(*last);
}

uint64_t Engine::batch_bytes() const { return std::max(memory_->budget_bytes(), kLeastBatchBytes); }

// Returns the bytes of one sample in a batch, including its key, its probability and its location.
uint64_t Engine::sample_bytes(uint32_t table) const {
  const uint64_t step_bytes = pools_[tables_[table].pool]->schema().step_bytes();
  return step_bytes * tables_[table].table->config().num_steps + sizeof(Sample) + sizeof(Piece);
}

uint64_t Engine::max_chunks_of(uint32_t table, uint64_t num_samples) const {
  const Schema& schema = pools_[tables_[table].pool]->schema();
  const uint64_t num_steps = tables_[table].table->config().num_steps;
  return num_samples * ((num_steps + schema.steps_per_chunk() - 2) / schema.steps_per_chunk() + 1);
}

// Throws Error if a pool's share of the memory is too small for one item or one sample. Without a
// disk, an item lies in memory when its writer inserts it. With a disk, a sample is loaded into
// memory beside a chunk that is being written.
void Engine::check_memory() const {
  const uint64_t beside = disk_ == nullptr ? 0 : 1;
  std::vector<uint64_t> needed(num_pools(), 1 + beside);
  for (uint32_t i = 0; i < num_tables(); ++i) {
    uint64_t& most = needed[tables_[i].pool];
    most = std::max(most, max_chunks_of(i, 1) + beside);
  }
  for (uint32_t i = 0; i < num_pools(); ++i) {
    const Slots& slots = pools_[i]->slots();
    if (slots.max_slots() >= needed[i]) continue;
    throw Error("memory_bytes (" + std::to_string(memory_->budget_bytes()) + " for " +
                std::to_string(num_pools()) + " kinds of steps) must hold a sample" +
                (disk_ == nullptr ? "" : " and a chunk being written") + ", " +
                std::to_string(needed[i]) + " chunks of " + std::to_string(slots.slot_bytes()) +
                " bytes of each; raise it, or lower steps_per_chunk");
  }
}

Collected Engine::collect(Loan* loan) {
  const auto drawn = loans_.find({loan->session, loan->lease});
  Lent& lent = drawn->second;
  advance(tables_[lent.table].pool);
  Pool& pool = *pools_[tables_[lent.table].pool];
  switch (pool.staging()->state_of(loan->lease)) {
    case Staging::Fetch::kUnderWay:
      return Collected::kNotYet;
    case Staging::Fetch::kDamaged:
      lose(drawn);
      return Collected::kLost;
    case Staging::Fetch::kReady:
      break;
  }
  loan->pieces.clear();
  for (const StepRange& steps : lent.steps) pool.streams().locate(steps, &loan->pieces);
  for (Piece& piece : loan->pieces) piece.slot = pool.slot_of(piece.slot);
  loan->is_ready = true;
  tables_[lent.table].reads += pool.staging()->reads_of(loan->lease);
  note_lent(loan->lease, lent);
  lent.is_out = true;
  return Collected::kReady;
}

void Engine::lose(Loans::iterator drawn) {
  const Lent lent = drawn->second;
  TableEntry& entry = tables_[lent.table];
  Pool& pool = *pools_[entry.pool];
  const std::vector<uint32_t> damaged = pool.staging()->damaged_of(drawn->first.second);
  entry.table->give_back(lent.keys);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < lent.keys.size(); ++i) {
    pieces.clear();
    pool.streams().locate(lent.steps[i], &pieces);
    const bool is_damaged = std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
      return std::find(damaged.begin(), damaged.end(), piece.slot) != damaged.end();
    });
    if (is_damaged && entry.table->erase(lent.keys[i])) ++entry.num_damaged;
  }
  end_loan(drawn);
}

bool Engine::loaded(uint32_t pool, uint32_t chunk, const TransferResult& result) {
  return pools_[pool]->staging()->loaded(chunk, result);
}

bool Engine::saved(uint32_t pool, uint32_t chunk, const TransferResult& result) {
  if (result.is_shortage) disk_trouble_ = result.error;
  pools_[pool]->staging()->saved(chunk, result);
  return true;
}

void Engine::regain_room() {
  disk_->regain();
  disk_trouble_.clear();
  for (uint32_t i = 0; i < num_pools(); ++i) advance(i);
}

std::string Engine::grant_waits(uint32_t writer) const {
  const Staging* const staging = pools_[writers_[writer].pool]->staging();
  if (staging != nullptr && staging->is_saving()) {
    return "writer waits: memory is full of steps not yet on disk";
  }
  if (!disk_trouble_.empty()) return "writer waits: " + disk_trouble_;
  if (!checkpoint_trouble_.empty()) return "writer waits: " + checkpoint_trouble_;
  const std::string& trouble = pools_[writers_[writer].pool]->slots().trouble();
  if (!trouble.empty()) return "writer waits: " + trouble;
  return "writer waits: memory is held by writers and batches on loan";
}

void Engine::advance(uint32_t number) {
  Pool& pool = *pools_[number];
  pool.advance();
  if (pool.staging() == nullptr) return;
  const uint64_t most = max_removed(number);
  for (uint64_t i = 0; i < most && pool.staging()->fetch_needs_room(); ++i) {
    if (!make_room(number)) return;
    pool.advance();
  }
}

std::vector<OpenSteps> Engine::begin_checkpoint() {
  std::vector<OpenSteps> open;
  for (const Writer& w : writers_) {
    if (!w.is_open) continue;
    const Pool& pool = *pools_[w.pool];
    const std::optional<uint32_t> chunk = pool.streams().last(w.stream);
    if (chunk && pool.staging()->residence().is_open(*chunk)) {
      const uint64_t begin = pool.streams().num_steps(w.stream) - pool.schema().steps_per_chunk();
      const uint64_t first = std::max(w.kept_end, begin);
      if (w.named_end > first) {
        open.push_back({w.pool, *chunk, pool.slot_of(*chunk), static_cast<uint32_t>(first - begin),
                        static_cast<uint32_t>(w.named_end - first)});
      }
    }
  }
  for (uint32_t i = 0; i < num_pools(); ++i) {
    pools_[i]->advance();  // drops unneeded chunks, so that the checkpoint does not contain them
    pools_[i]->staging()->residence().begin_checkpoint();
    advance(i);
  }
  return open;
}

void Engine::note_open_steps_kept() {
  for (Writer& w : writers_) w.kept_end = w.named_end;
}

Engine::Checkpoint Engine::checkpoint_state() const {
  Checkpoint state = Checkpoint::kSaved;
  for (const auto& pool : pools_) {
    if (pool->staging()->has_checkpoint_saved()) continue;
    // While another pool is saving a chunk, rest_of_checkpoint() would omit that chunk.
    if (!pool->staging()->is_checkpoint_stuck()) return Checkpoint::kUnderWay;
    state = Checkpoint::kStuck;
  }
  return state;
}

std::vector<event::ChunkSaved> Engine::saved_of_checkpoint() const {
  std::vector<event::ChunkSaved> saved;
  for (const auto& pool : pools_) {
    const auto& some = pool->staging()->residence().saved_of_checkpoint();
    saved.insert(saved.end(), some.begin(), some.end());
  }
  return saved;
}

void Engine::end_checkpoint() {
  for (uint32_t i = 0; i < num_pools(); ++i) {
    pools_[i]->staging()->residence().end_checkpoint();
    advance(i);
  }
}

bool Engine::wants_checkpoint() const {
  for (uint32_t i = 0; i < num_pools(); ++i) {
    const Staging& staging = *pools_[i]->staging();
    if (!staging.wants_checkpoint(/*has_items=*/false)) continue;
    const bool has_items = std::any_of(tables_.begin(), tables_.end(), [&](const auto& entry) {
      return entry.pool == i && entry.table->size() > 0;
    });
    if (staging.wants_checkpoint(has_items)) return true;
  }
  return false;
}

void Engine::give_up_checkpoints() {
  disk_->give_up_checkpoints();
  for (uint32_t i = 0; i < num_pools(); ++i) advance(i);
}

std::vector<OpenSteps> Engine::rest_of_checkpoint() const {
  std::vector<OpenSteps> rest;
  for (uint32_t i = 0; i < num_pools(); ++i) {
    const Pool& pool = *pools_[i];
    for (const uint32_t chunk : pool.staging()->residence().rest_of_checkpoint()) {
      rest.push_back({i, chunk, pool.slot_of(chunk), 0, pool.schema().steps_per_chunk()});
    }
  }
  return rest;
}

void Engine::restore_named_ends(const State& state) {
  std::map<std::pair<uint32_t, uint32_t>, Writer*> by_stream;
  for (Writer& w : writers_) {
    if (w.is_open) by_stream[{w.pool, w.stream}] = &w;
  }
  for (const SavedTable& table : state.tables) {
    for (const SavedItem& item : table.items) {
      if (item.key < 0) continue;
      const auto writer = by_stream.find({table.pool, item.steps.stream});
      if (writer == by_stream.end()) continue;
      uint64_t& end = writer->second->named_end;
      end = std::max(end, item.steps.first + item.steps.num_steps);
    }
  }
}

}  // namespace tengen::store::engine
