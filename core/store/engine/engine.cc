#include "store/engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "store/tables/slot_set.h"

namespace tengen::store::engine {
namespace {

// The number of items, beyond the items of a few chunks, that may be removed in vain for one
// caller. Removals free no memory while a loan, a writer or another table also holds the steps.
constexpr uint64_t kMaxRemoved = 64;
constexpr uint64_t kMaxRemovedChunks = 4;

// Formats a count, rounded up. The count may be any number, because the rate limits may be.
std::string text_of_count(double count) {
  constexpr uint64_t kMost = 1'000'000'000'000'000;
  if (!(count <= static_cast<double>(kMost))) return "more than " + std::to_string(kMost);
  return std::to_string(static_cast<uint64_t>(std::ceil(std::max(count, 0.0))));
}

// Returns the bytes of memory for the lists of a loan with `num_samples` samples.
uint64_t bytes_of_loan(uint64_t num_samples) {
  constexpr uint64_t kSampleBytes = sizeof(int64_t) + sizeof(StepRange);
  constexpr uint64_t kBytes = 256;  // per loan, in addition to its samples
  return kBytes + num_samples * kSampleBytes;
}

}  // namespace

uint32_t Engine::add_pool(Schema schema) {
  const uint32_t number = num_pools();
  check(number < State::kMaxPools, "pools", number + 1,
        "must be at most 1024 kinds of steps; give tables the same columns, or use several stores");
  pools_.push_back(
      std::make_unique<Pool>(std::move(schema), memory_, number, log_, disk_, &num_touched_));
  check_memory();
  return number;
}

uint32_t Engine::add_table(TableConfig config, uint32_t pool) {
  check(!config.name.empty() && !find_table(config.name), "table", config.name,
        "must have a unique name; rename it");
  const uint32_t number = num_tables();
  auto table = std::make_unique<Table>(std::move(config), seed_ + number, &pools_[pool]->streams(),
                                       log_, number);
  tables_.push_back({std::move(table), pool, 0, {}});
  check_memory();
  if (log_ != nullptr) log_->add(event::TableAdded{number, pool});
  return number;
}

std::optional<uint32_t> Engine::find_table(const std::string& name) const {
  for (uint32_t i = 0; i < num_tables(); ++i) {
    if (tables_[i].table->config().name == name) return i;
  }
  return std::nullopt;
}

SessionId Engine::begin_session() {
  if (log_ != nullptr) log_->add(event::SessionBegun{next_session_, 0});
  return next_session_++;
}

void Engine::describe_session(SessionId session, std::span<const std::byte> description) {
  if (log_ == nullptr) return;
  const uint32_t num_bytes = static_cast<uint32_t>(description.size());
  log_->add(event::SessionDescribed{session, num_bytes}, description);
}

void Engine::note_progress(SessionId session, const SessionProgress& progress) {
  if (log_ != nullptr) log_->add(event::SessionProgressed{session, 0, progress});
}

bool Engine::end_session(SessionId session) {
  for (uint32_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i].is_open && writers_[i].session == session) close_writer(i);
  }
  uint64_t num_given_back = 0;
  const uint64_t end = num_touched() + kMaxSamples;
  for (auto next = loans_.lower_bound({session, 0});
       next != loans_.end() && next->first.first == session;) {
    const auto loan = next++;
    if (num_given_back >= kMaxAtOnce || num_touched() >= end) return true;
    num_given_back += loan->second.steps.size();
    if (loan->second.is_out) {
      give_back(session, loan->first.second);
    } else {
      tables_[loan->second.table].table->give_back(loan->second.keys);
      end_loan(loan);
    }
  }
  for (const auto& pool : pools_) {
    if (pool->staging() != nullptr) pool->staging()->expect_no_more(session);
  }
  if (log_ != nullptr) log_->add(event::SessionEnded{session, 0});
  return false;
}

Engine::OpenedWriter Engine::open_writer(SessionId session, const std::string& name,
                                         uint32_t pool) {
  check_writer_name(name);
  check(!is_writer_open(name), "writer", name, kNameIsTaken);
  const uint32_t number = take_slot(&writers_, &free_writers_);
  writers_[number] = {name, session, pool, pools_[pool]->streams().open(), true, {}, 0, 0, 0};
  open_names_[name] = number;
  if (log_ != nullptr) {
    const uint32_t num_bytes = static_cast<uint32_t>(name.size());
    log_->add(event::WriterOpened{number, session, pool, writers_[number].stream, num_bytes, 0},
              std::span(name.data(), name.size()));
  }
  Name& known = names_[name];
  closed_names_.erase(std::exchange(known.closed_at, 0));
  return {session, number, known.next_sequence};
}

void Engine::close_name(const std::string& name) {
  // A damaged state may lack the name of a writer that it opens.
  const auto closed = names_.try_emplace(name).first;
  // Forgets a name without inserts, as a state does, because an unknown name also begins at 0.
  if (closed->second.next_sequence == 0) {
    names_.erase(closed);
    return;
  }
  closed->second.closed_at = ++num_closed_;
  closed_names_[num_closed_] = &closed->first;
  // Forgets a bounded number per call, because a state from a version that forgot no names may
  // contain a million names too many.
  for (uint64_t i = 0; i < kMaxAtOnce && closed_names_.size() > kMaxNames; ++i) {
    const auto oldest = closed_names_.begin();
    const std::string forgotten = *oldest->second;
    closed_names_.erase(oldest);
    names_.erase(forgotten);
    if (log_ == nullptr) continue;
    const uint32_t num_bytes = static_cast<uint32_t>(forgotten.size());
    log_->add(event::NameForgotten{num_bytes, 0}, std::span(forgotten.data(), forgotten.size()));
  }
}

std::optional<uint32_t> Engine::grant(uint32_t writer) {
  Writer& w = open_writer_of(writer);
  Pool& pool = *pools_[w.pool];
  const uint64_t num_beside = has_empty_chunk(w) ? 0 : num_writers() - 1;
  std::optional<uint32_t> chunk = pool.take_chunk(num_beside);
  const uint64_t most = max_removed(w.pool) - w.num_removed;
  const Turn turn(pool.streams());
  uint64_t num_removed = 0;
  bool is_cut = false;
  while (!chunk && num_removed < most) {
    if (turn.is_over(num_removed)) {
      is_cut = true;
      break;
    }
    // Stops here, because a chunk that is being saved will free memory without the loss of an item.
    if (pool.staging() != nullptr && !pool.staging()->needs_room()) break;
    if (!make_room(w.pool)) break;
    ++num_removed;
    chunk = pool.take_chunk(num_beside);
  }
  num_removed_ += num_removed;
  w.num_removed += num_removed;
  const bool goes_on = !chunk && is_cut;
  if (!goes_on) w.num_removed = 0;
  if (!chunk) return chunk;
  w.granted.push_back(*chunk);
  if (log_ != nullptr) log_->add(event::Granted{writer, *chunk});
  return pool.slot_of(*chunk);
}

void Engine::append(uint32_t writer, uint32_t slot) {
  Writer& w = open_writer_of(writer);
  Pool& pool = *pools_[w.pool];
  const auto it = std::find_if(w.granted.begin(), w.granted.end(),
                               [&](uint32_t chunk) { return pool.slot_of(chunk) == slot; });
  check(it != w.granted.end(), "slot", slot, "must be one that the writer was granted");
  const uint32_t chunk = *it;
  w.granted.erase(it);
  pool.complete_last(w.stream);
  pool.streams().append(w.stream, chunk);
  if (log_ != nullptr) log_->add(event::Appended{writer, chunk});
  advance(w.pool);
}

InsertResult Engine::insert(uint32_t writer, const Insert& insert) {
  Writer& w = open_writer_of(writer);
  uint64_t& next_sequence = names_[w.name].next_sequence;
  if (insert.sequence < next_sequence) return InsertResult::kKnown;
  check(insert.sequence < UINT64_MAX, "sequence", insert.sequence,
        "must be below 2^64 - 1, because another follows; number items from 0");
  check(insert.table < num_tables() && tables_[insert.table].pool == w.pool, "table", insert.table,
        "must be a table of the writer's steps");
  const StepRange steps{insert.first, w.stream, insert.num_steps};
  if (!pools_[w.pool]->streams().contains(steps)) {
    throw Error("steps (" + std::to_string(insert.first) + " to " +
                std::to_string(insert.first + insert.num_steps) +
                ") must be appended and not yet released; keep more steps");
  }
  Table& table = *tables_[insert.table].table;
  if (table.inserts_allowed(1) == 0) return InsertResult::kBlocked;
  if (!table.insert({steps, insert.priority})) return InsertResult::kMakingRoom;
  ++num_touched_;
  next_sequence = insert.sequence + 1;
  w.named_end = std::max(w.named_end, insert.first + insert.num_steps);
  if (w.named_end == pools_[w.pool]->streams().num_steps(w.stream)) {
    pools_[w.pool]->complete_last(w.stream);
  }
  if (log_ != nullptr) log_->add(event::WriterAdvanced{writer, 0, next_sequence});
  return InsertResult::kInserted;
}

void Engine::release_before(uint32_t writer, uint64_t first) {
  const Writer& w = open_writer_of(writer);
  pools_[w.pool]->streams().release_before(w.stream, first);
}

void Engine::close_writer(uint32_t writer) {
  end_writer(writer);
  if (log_ != nullptr) log_->add(event::WriterClosed{writer, 0});
}

void Engine::end_writer(uint32_t writer) {
  Writer& w = open_writer_of(writer);
  // Erases one slot at a time, because a call that runs out of memory is repeated.
  for (; !w.granted.empty(); w.granted.erase(w.granted.begin())) {
    pools_[w.pool]->return_chunk(w.granted.front());
  }
  pools_[w.pool]->complete_last(w.stream);
  pools_[w.pool]->streams().close(w.stream);
  open_names_.erase(w.name);
  close_name(w.name);
  w = Writer();
  free_writers_.push_back(writer);
}

bool Engine::sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan) {
  TableEntry& entry = tables_[table];
  if (entry.table->samples_allowed(num_samples) < num_samples) return false;
  Staging* const staging = pools_[entry.pool]->staging();
  if (staging != nullptr) {
    advance(entry.pool);
    if (!staging->can_fetch()) return false;
    // Checks again, because advance() may have removed items to make room.
    if (entry.table->samples_allowed(num_samples) < num_samples) return false;
  }
  Streams& streams = pools_[entry.pool]->streams();
  // Reserves memory before sampling, because a batch may need more memory than is left.
  loan->samples.resize(num_samples);
  loan->pieces.clear();
  loan->pieces.reserve(num_samples);
  Lent lent;
  lent.session = session;
  lent.table = table;
  lent.keys.reserve(num_samples);
  lent.steps.reserve(num_samples);
  lent.is_out = staging == nullptr;
  if (log_ != nullptr) log_->reserve(bytes_of_loan(num_samples));
  entry.table->sample(loan->samples);
  num_touched_ += num_samples;
  loan->session = session;
  loan->lease = next_lease_++;
  loan->table_size = entry.table->size();
  loan->is_ready = staging == nullptr;
  for (const Sample& sample : loan->samples) lent.keys.push_back(sample.key);
  try {
    for (const Sample& sample : loan->samples) streams.prefetch(sample.steps);
    for (const Sample& sample : loan->samples) {
      streams.hold(sample.steps);
      lent.steps.push_back(sample.steps);
      streams.locate(sample.steps, &loan->pieces);
    }
    if (staging != nullptr) staging->fetch(loan->lease, loan->pieces);
  } catch (...) {
    for (const StepRange& steps : lent.steps) streams.let_go(steps);
    entry.table->give_back(lent.keys);
    throw;
  }
  if (staging != nullptr) loan->pieces.clear();
  if (staging == nullptr) note_lent(loan->lease, lent);
  loans_.emplace(std::pair(session, loan->lease), std::move(lent));
  loan_bytes_ += bytes_of_loan(num_samples);
  return true;
}

void Engine::note_lent(uint64_t lease, const Lent& lent) {
  if (log_ == nullptr) return;
  const uint32_t count = static_cast<uint32_t>(lent.keys.size());
  log_->add(event::Lent{lease, lent.session, lent.table, count, 0}, std::span(lent.keys),
            std::span(lent.steps));
}

void Engine::ack(SessionId session, uint64_t lease, std::span<const double> priorities) {
  const auto loan = find_loan(session, lease);
  const std::vector<int64_t>& keys = loan->second.keys;
  Table& table = *tables_[loan->second.table].table;
  if (!priorities.empty()) {
    if (priorities.size() != keys.size()) {
      throw Error("priorities (" + std::to_string(priorities.size()) + ") must be " +
                  std::to_string(keys.size()) + ", one for each sample");
    }
    table.set_priorities(keys, priorities);
  }
  table.commit(keys);
  num_touched_ += keys.size();
  end_loan(loan);
  if (log_ != nullptr) log_->add(event::Acknowledged{lease});
}

void Engine::give_back(SessionId session, uint64_t lease) {
  const auto loan = find_loan(session, lease);
  tables_[loan->second.table].table->give_back(loan->second.keys);
  num_touched_ += loan->second.keys.size();
  end_loan(loan);
  if (log_ != nullptr) log_->add(event::GivenBack{lease});
}

bool Engine::may_lend(uint32_t table, uint32_t num_samples, uint64_t num_loans) const {
  if (num_loans >= tables_[table].table->config().max_loans) return false;
  const uint64_t each = bytes_of_loan(num_samples);
  if (loan_bytes_ + each > batch_bytes()) return false;
  return num_loans == 0 || (num_loans + 1) * each <= batch_bytes() - loan_bytes_ - each;
}

uint64_t Engine::num_loans(SessionId session) const {
  return static_cast<uint64_t>(std::count_if(loans_.lower_bound({session, 0}),
                                             loans_.upper_bound({session, UINT64_MAX}),
                                             [](const auto& loan) { return loan.second.is_out; }));
}

void Engine::restore(const State& state) {
  check_restorable(state);
  for (uint32_t i = 0; i < state.num_slabs.size(); ++i) {
    pools_[i]->begin_restore(state.num_slabs[i], state.streams[i], state.chunks[i],
                             state.num_places[i]);
    for (const auto& [place, steps] : state.open_steps) {
      if (place.first == i) pools_[i]->restore_steps(place.second, steps);
    }
  }
  for (uint32_t i = 0; i < num_tables(); ++i) {
    const SavedTable& saved = state.tables[i];
    Table& table = *tables_[i].table;
    if (saved.limits) table.set_limits(*saved.limits);
    if (saved.capacity) table.set_capacity(saved.capacity->first, saved.capacity->second);
    table.restore(saved, state.num_restarts);
  }
  for (const auto& [lease, loan] : state.loans) restore_loan(loan, lease);
  std::vector<std::vector<uint32_t>> granted(num_pools());
  for (uint32_t i = 0; i < state.writers.size(); ++i) {
    const SavedWriter& from = state.writers[i];
    const bool is_open = !from.name.empty();
    writers_.push_back(
        {from.name, from.session, from.pool, from.stream, is_open, from.granted, 0, 0, 0});
    if (!is_open) {
      free_writers_.push_back(i);
      continue;
    }
    open_names_[from.name] = i;
    granted[from.pool].insert(granted[from.pool].end(), from.granted.begin(), from.granted.end());
  }
  for (uint32_t i = 0; i < num_pools(); ++i) pools_[i]->end_restore(granted[i]);
  restore_named_ends(state);
  for (const auto& [name, next_sequence] : state.next_sequences) {
    const auto known = names_.emplace(name, Name{next_sequence, 0}).first;
    if (is_writer_open(name)) continue;
    known->second.closed_at = ++num_closed_;
    closed_names_[num_closed_] = &known->first;
  }
  next_session_ = static_cast<SessionId>(state.next_session);
  next_lease_ = state.next_lease;
}

void Engine::restore_loan(const SavedLoan& saved, uint64_t lease) {
  const TableEntry& entry = tables_[saved.table];
  Pool& pool = *pools_[entry.pool];
  for (const StepRange& steps : saved.steps) pool.streams().hold(steps);
  entry.table->resume_uses(saved.keys);
  loan_bytes_ += bytes_of_loan(saved.keys.size());
  loans_[{saved.session, lease}] = {saved};
  if (pool.staging() == nullptr) return;
  // Holds the steps in memory until the loan ends.
  std::vector<Piece> pieces;
  for (const StepRange& steps : saved.steps) pool.streams().locate(steps, &pieces);
  pool.staging()->resume_fetch(lease, pieces);
}

std::string Engine::insert_waits(uint32_t number) const {
  const Table& table = *tables_[number].table;
  if (table.inserts_allowed(1) == 1) return "";
  const RateLimits& limits = table.limiter().limits();
  const double ahead = table.limiter().cursor() + limits.samples_per_insert - limits.max_cursor;
  return "insert waits: " + text_of_count(ahead) + " samples must be drawn first";
}

std::string Engine::sample_waits(uint32_t number, uint32_t num_samples) const {
  const Table& table = *tables_[number].table;
  const Staging* const staging = pools_[tables_[number].pool]->staging();
  if (table.samples_allowed(num_samples) == num_samples) {
    if (staging == nullptr || staging->can_fetch()) return "";
    const std::string& trouble = pools_[tables_[number].pool]->slots().trouble();
    if (!trouble.empty()) return "sample waits: " + trouble;
    return "sample waits: memory is held by writers and batches on loan";
  }
  const RateLimits& limits = table.limiter().limits();
  if (table.size() < limits.min_size) {
    return "sample waits: " + std::to_string(limits.min_size - table.size()) +
           " items must be inserted first";
  }
  const double most = limits.max_cursor - limits.min_cursor;
  if (num_samples > most) {
    return "sample waits: limits never allow more than " + text_of_count(std::floor(most)) +
           " samples at once; widen them, or request fewer";
  }
  const double behind = limits.min_cursor + num_samples - table.limiter().cursor();
  if (behind > 0) {
    return "sample waits: " + text_of_count(behind / limits.samples_per_insert) +
           " inserts must be made first";
  }
  return "sample waits: every item has been used as often as it may be, or is on loan";
}

Engine::Writer& Engine::open_writer_of(uint32_t writer) {
  check(writer < writers_.size() && writers_[writer].is_open, "writer", writer,
        "is closed; open it again");
  return writers_[writer];
}

Engine::Loans::iterator Engine::find_loan(SessionId session, uint64_t lease) {
  const auto it = loans_.find({session, lease});
  check(it != loans_.end() && it->second.is_out, "lease", lease,
        "is unknown or already acknowledged; acknowledge each batch once");
  return it;
}

void Engine::end_loan(Loans::iterator loan) {
  Pool& pool = *pools_[tables_[loan->second.table].pool];
  if (pool.staging() != nullptr) pool.staging()->end_fetch(loan->first.second);
  for (const StepRange& steps : loan->second.steps) pool.streams().let_go(steps);
  loan_bytes_ -= bytes_of_loan(loan->second.keys.size());
  loans_.erase(loan);
}

uint64_t Engine::max_removed(uint32_t pool) const {
  return kMaxRemoved + kMaxRemovedChunks * pools_[pool]->schema().steps_per_chunk();
}

bool Engine::make_room(uint32_t pool) {
  Table* largest = nullptr;
  for (const TableEntry& entry : tables_) {
    if (entry.pool != pool || entry.table->size() == 0) continue;
    if (largest == nullptr || entry.table->num_steps() > largest->num_steps()) {
      largest = entry.table.get();
    }
  }
  if (largest == nullptr) return false;
  largest->remove_one();
  return true;
}

}  // namespace tengen::store::engine
