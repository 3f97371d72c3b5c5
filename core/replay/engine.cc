#include "replay/engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tengen::replay {
namespace {

// An item whose steps a loan or another table holds as well frees no memory; a few such are
// removed in vain before a writer is told to wait.
constexpr int kMaxRemoved = 64;

}  // namespace

uint32_t Engine::add_pool(Schema schema) {
  const uint32_t number = num_pools();
  pools_.push_back(std::make_unique<Pool>(std::move(schema), memory_, number));
  return number;
}

uint32_t Engine::add_table(TableConfig config, uint32_t pool) {
  if (config.name.empty() || find_table(config.name)) {
    throw Error("table (" + config.name + ") must have a name of its own; rename it");
  }
  const uint32_t number = num_tables();
  auto table = std::make_unique<Table>(std::move(config), seed_ + number, &pools_[pool]->streams());
  tables_.push_back({std::move(table), pool});
  return number;
}

std::optional<uint32_t> Engine::find_table(const std::string& name) const {
  for (uint32_t i = 0; i < num_tables(); ++i) {
    if (tables_[i].table->config().name == name) return i;
  }
  return std::nullopt;
}

void Engine::end_session(SessionId session) {
  for (uint32_t i = 0; i < writers_.size(); ++i) {
    if (writers_[i].is_open && writers_[i].session == session) close_writer(i);
  }
  for (auto it = loans_.begin(); it != loans_.end();) {
    if (it->second.session == session) {
      tables_[it->second.table].table->give_back(it->second.keys);
      it = end_loan(it);
    } else {
      ++it;
    }
  }
}

Engine::OpenedWriter Engine::open_writer(SessionId session, const std::string& name,
                                         uint32_t pool) {
  if (name.empty() || open_names_.count(name) != 0) {
    throw Error("writer (" + name + ") is open in another client; give each a name of its own");
  }
  uint32_t number;
  if (free_writers_.empty()) {
    number = static_cast<uint32_t>(writers_.size());
    writers_.emplace_back();
  } else {
    number = free_writers_.back();
    free_writers_.pop_back();
  }
  writers_[number] = {name, session, pool, pools_[pool]->streams().open(), true, {}};
  open_names_[name] = number;
  return {number, next_sequences_[name]};
}

std::optional<uint32_t> Engine::grant(uint32_t writer) {
  Writer& w = open_writer_of(writer);
  std::optional<uint32_t> slot = pools_[w.pool]->take_slot();
  for (int i = 0; !slot && i < kMaxRemoved && make_room(w.pool); ++i) {
    slot = pools_[w.pool]->take_slot();
  }
  if (slot) w.granted.push_back(*slot);
  return slot;
}

void Engine::append(uint32_t writer, uint32_t slot) {
  Writer& w = open_writer_of(writer);
  const auto it = std::find(w.granted.begin(), w.granted.end(), slot);
  if (it == w.granted.end()) {
    throw Error("slot (" + std::to_string(slot) + ") must be one that the writer was granted");
  }
  w.granted.erase(it);
  pools_[w.pool]->streams().append(w.stream, slot);
}

InsertResult Engine::insert(uint32_t writer, const Insert& insert) {
  const Writer& w = open_writer_of(writer);
  uint64_t& next_sequence = next_sequences_[w.name];
  if (insert.sequence < next_sequence) return InsertResult::kKnown;
  if (insert.table >= num_tables() || tables_[insert.table].pool != w.pool) {
    throw Error("table (" + std::to_string(insert.table) + ") must be one of the writer's steps");
  }
  const StepRange steps{insert.first, w.stream, insert.num_steps};
  if (!pools_[w.pool]->streams().contains(steps)) {
    throw Error("steps (" + std::to_string(insert.first) + " to " +
                std::to_string(insert.first + insert.num_steps) +
                ") must be appended and not released; keep more steps");
  }
  Table& table = *tables_[insert.table].table;
  if (table.inserts_allowed(1) == 0) return InsertResult::kBlocked;
  table.insert({steps, insert.priority, insert.version});
  next_sequence = insert.sequence + 1;
  return InsertResult::kInserted;
}

void Engine::release_before(uint32_t writer, uint64_t first) {
  const Writer& w = open_writer_of(writer);
  pools_[w.pool]->streams().release_before(w.stream, first);
}

void Engine::close_writer(uint32_t writer) {
  Writer& w = open_writer_of(writer);
  for (const uint32_t slot : w.granted) pools_[w.pool]->return_slot(slot);
  pools_[w.pool]->streams().close(w.stream);
  open_names_.erase(w.name);
  w = Writer();
  free_writers_.push_back(writer);
}

bool Engine::sample(SessionId session, uint32_t table, uint32_t num_samples, Loan* loan) {
  TableEntry& entry = tables_[table];
  if (entry.table->samples_allowed(num_samples) < num_samples) return false;
  Streams& streams = pools_[entry.pool]->streams();
  loan->samples.resize(num_samples);
  loan->pieces.clear();
  entry.table->sample(loan->samples);
  Lent lent{session, table, {}, {}};
  lent.keys.reserve(num_samples);
  lent.steps.reserve(num_samples);
  for (const Sample& sample : loan->samples) streams.prefetch(sample.steps);
  for (const Sample& sample : loan->samples) {
    streams.hold(sample.steps);
    streams.locate(sample.steps, &loan->pieces);
    lent.keys.push_back(sample.key);
    lent.steps.push_back(sample.steps);
  }
  loan->lease = next_lease_++;
  loan->table_size = entry.table->size();
  loans_.emplace_hint(loans_.end(), loan->lease, std::move(lent));
  return true;
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
  end_loan(loan);
}

void Engine::give_back(SessionId session, uint64_t lease) {
  const auto loan = find_loan(session, lease);
  tables_[loan->second.table].table->give_back(loan->second.keys);
  end_loan(loan);
}

std::string Engine::insert_waits(uint32_t number) const {
  const Table& table = *tables_[number].table;
  if (table.inserts_allowed(1) == 1) return "";
  const RateLimits& limits = table.limiter().limits();
  const double ahead = table.limiter().cursor() + limits.samples_per_insert - limits.max_cursor;
  return "insert waits: " + std::to_string(static_cast<uint64_t>(std::ceil(ahead))) +
         " samples must be drawn first";
}

std::string Engine::sample_waits(uint32_t number, uint32_t num_samples) const {
  const Table& table = *tables_[number].table;
  if (table.samples_allowed(num_samples) == num_samples) return "";
  const RateLimits& limits = table.limiter().limits();
  if (table.size() < limits.min_size) {
    return "sample waits: " + std::to_string(limits.min_size - table.size()) +
           " items must be inserted first";
  }
  const double behind = limits.min_cursor + num_samples - table.limiter().cursor();
  if (behind > 0) {
    const double inserts = std::ceil(behind / limits.samples_per_insert);
    return "sample waits: " + std::to_string(static_cast<uint64_t>(inserts)) +
           " inserts must be made first";
  }
  return "sample waits: every item has been used as often as it may be, or is on loan";
}

Engine::Writer& Engine::open_writer_of(uint32_t writer) {
  if (writer >= writers_.size() || !writers_[writer].is_open) {
    throw Error("writer (" + std::to_string(writer) + ") is closed; open it again");
  }
  return writers_[writer];
}

Engine::Loans::iterator Engine::find_loan(SessionId session, uint64_t lease) {
  const auto it = loans_.find(lease);
  if (it == loans_.end() || it->second.session != session) {
    throw Error("lease (" + std::to_string(lease) +
                ") must be one that is not acknowledged; acknowledge batches once each");
  }
  return it;
}

Engine::Loans::iterator Engine::end_loan(Loans::iterator loan) {
  Streams& streams = pools_[tables_[loan->second.table].pool]->streams();
  for (const StepRange& steps : loan->second.steps) streams.let_go(steps);
  return loans_.erase(loan);
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

}  // namespace tengen::replay
