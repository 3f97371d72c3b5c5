#include "store/state/state.h"

#include <algorithm>

#include "base/error.h"

namespace tengen::store::engine {

void refuse_state(const char* what, uint64_t value) {
  throw Error(std::string(what) + " (" + std::to_string(value) +
              ") is not in the log's store; the log is damaged, remove the store's folder");
}

namespace {

[[noreturn]] void refuse(const char* what, uint64_t value) { refuse_state(what, value); }

// Reads the values of one record in order.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T value() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  template <class T>
  std::vector<T> values(uint64_t count) {
    if (count > bytes_.size() / sizeof(T)) refuse("count", count);
    const std::span<const std::byte> from = take(count * sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), from.data(), from.size());
    return values;
  }
  std::string text(uint64_t num_bytes) {
    const std::vector<char> chars = values<char>(num_bytes);
    return {chars.begin(), chars.end()};
  }
  std::span<const std::byte> take(uint64_t num_bytes) {
    if (num_bytes > bytes_.size()) refuse("record of bytes", bytes_.size());
    const std::span<const std::byte> front = bytes_.first(num_bytes);
    bytes_ = bytes_.subspan(num_bytes);
    return front;
  }
  bool is_at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

// The maximum number of serials in a state. It leaves serials for later inserts.
constexpr int64_t kMaxSerials = int64_t{1} << 62;

template <class T>
T& at(std::vector<T>& values, uint64_t index, const char* what) {
  if (index >= values.size()) refuse(what, index);
  return values[index];
}

template <class T>
T& grown_to(std::vector<T>& values, uint64_t index, const char* what) {
  if (index > State::most_entries) refuse(what, index);
  if (index >= values.size()) values.resize(index + 1);
  return values[index];
}

template <class Map>
auto& found(Map& map, uint64_t key, const char* what) {
  const auto it = map.find(static_cast<typename Map::key_type>(key));
  if (it == map.end()) refuse(what, key);
  return it->second;
}

// Applies one record to a state. If this throws bad_alloc, the same record can be applied again.
class Step {
 public:
  Step(State* state, Reader record) : s_(*state), in_(record) {}

  void run(uint32_t kind) {
    const auto apply_one = [&]<class Event>() { apply(in_.value<Event>()); };
    if (!event::AllKinds::call(kind, apply_one)) refuse("record of kind", kind);
  }

 private:
  SavedTable& table(uint64_t number) { return at(s_.tables, number, "table"); }
  SavedWriter& writer(uint64_t number) {
    SavedWriter& found = at(s_.writers, number, "writer");
    if (found.name.empty()) refuse("writer", number);
    return found;
  }
  SavedStream& stream(uint32_t pool, uint32_t number) {
    return at(at(s_.streams, pool, "pool"), number, "stream");
  }
  SavedChunk& chunk(uint32_t pool, uint32_t number) {
    return at(at(s_.chunks, pool, "pool"), number, "chunk");
  }
  void use_place(uint32_t pool, uint32_t place) {
    if (place > kMaxItems) refuse("place", place);
    s_.num_places[pool] = std::max(s_.num_places[pool], place + 1);
  }
  static SavedItem* item_of(SavedTable& table, int64_t key) {
    const uint32_t slot = slot_of(key);
    if (slot >= table.items.size() || table.items[slot].key != key) return nullptr;
    return &table.items[slot];
  }

  void apply(const event::SlabsGrown& e) { at(s_.num_slabs, e.pool, "pool") = e.num_slabs; }
  void apply(const event::SessionBegun& e) {
    s_.sessions[e.session];
    s_.next_session = std::max<uint64_t>(s_.next_session, uint64_t{e.session} + 1);
  }
  void apply(const event::SessionDescribed& e) {
    found(s_.sessions, e.session, "session").description = in_.values<std::byte>(e.num_bytes);
  }
  void apply(const event::SessionProgressed& e) {
    found(s_.sessions, e.session, "session").progress = e.progress;
  }
  void apply(const event::WriterAdvanced& e) {
    s_.next_sequences[writer(e.writer).name] = e.next_sequence;
  }
  void apply(const event::SequenceSaved& e) {
    s_.next_sequences[in_.text(e.num_name_bytes)] = e.next_sequence;
  }
  void apply(const event::NameForgotten& e) { s_.next_sequences.erase(in_.text(e.num_name_bytes)); }
  void apply(const event::Granted& e) { writer(e.writer).granted.push_back(e.chunk); }
  void apply(const event::Released& e) {
    stream(e.pool, e.stream).first_of_writer = e.first_of_writer;
  }
  void apply(const event::ChunkBegun& e) {
    grown_to(at(s_.chunks, e.pool, "pool"), e.chunk, "chunk") = {e.slot, kNowhere, 0};
    s_.open_steps.erase({e.pool, e.chunk});
  }
  void apply(const event::ChunkMoved& e) { chunk(e.pool, e.chunk).slot = e.slot; }
  void apply(const event::ChunkSaved& e) {
    chunk(e.pool, e.chunk).place = e.place;
    chunk(e.pool, e.chunk).checksum = e.checksum;
    use_place(e.pool, e.place);
    s_.open_steps.erase({e.pool, e.chunk});
  }
  void apply(const event::PlacesUsed& e) {
    if (e.num_places > kMaxItems + 1) refuse("places", e.num_places);
    at(s_.num_places, e.pool, "pool") = e.num_places;
  }
  void apply(const event::StepsSaved& e) {
    (void)chunk(e.pool, e.chunk);
    std::vector<std::byte> bytes = in_.values<std::byte>(e.num_bytes);
    s_.open_steps[{e.pool, e.chunk}].push_back({e.first, e.count, std::move(bytes)});
  }
  void apply(const event::Removed& e) {
    SavedItem* item = item_of(table(e.table), e.key);
    if (item == nullptr) refuse("key", static_cast<uint64_t>(e.key));
    item->key = -1;
    table(e.table).num_samples += e.num_lost;
  }
  void apply(const event::GivenBack& e) {
    give_back(found(s_.loans, e.lease, "lease"));
    end_loan(e.lease);
  }
  void apply(const event::LimitsSet& e) { table(e.table).limits = e.limits; }
  void apply(const event::CapacitySet& e) { table(e.table).capacity = {e.max_items, e.max_steps}; }
  void apply(const event::TableCounted& e) {
    SavedTable& counted = table(e.table);
    if (e.num_serials < 0 || e.num_serials > kMaxSerials) {
      refuse("serials", static_cast<uint64_t>(e.num_serials));
    }
    counted.num_inserts = e.num_inserts;
    counted.num_samples = e.num_samples;
    counted.num_serials = e.num_serials;
  }
  void apply(const event::Counted& e) {
    s_.next_session = e.next_session;
    s_.next_lease = e.next_lease;
    s_.num_restarts = e.num_restarts;
  }
  void apply(const event::SessionEnded& e) { end_session(e.session); }
  void apply(const event::WriterClosed& e) { close_writer(e.writer); }

  void apply(const event::TableAdded& e) {
    if (e.table != s_.tables.size()) refuse("table", e.table);
    if (e.pool >= State::kMaxPools) refuse("pool", e.pool);
    if (e.pool >= s_.num_places.size()) {
      s_.num_slabs.resize(e.pool + 1);
      s_.streams.resize(e.pool + 1);
      s_.chunks.resize(e.pool + 1);
      s_.num_places.resize(e.pool + 1);
    }
    s_.tables.emplace_back().pool = e.pool;
  }

  void apply(const event::WriterOpened& e) {
    const std::string name = in_.text(e.num_name_bytes);
    if (name.empty() || e.pool >= s_.streams.size()) refuse("pool", e.pool);
    grown_to(s_.writers, e.writer, "writer") = {name, e.session, e.pool, e.stream, {}};
    s_.next_sequences.try_emplace(name, 0);
    std::vector<SavedStream>& streams = s_.streams[e.pool];
    SavedStream& opened = grown_to(streams, e.stream, "stream");
    opened = SavedStream();
    opened.is_open = true;
  }

  void close_writer(uint32_t number) {
    SavedWriter& closed = writer(number);
    SavedStream& of = stream(closed.pool, closed.stream);
    of.is_open = false;
    of.first_of_writer = of.first_chunk + of.slots.size();
    // Forgets names as Engine::close_name() does.
    const auto name = s_.next_sequences.find(closed.name);
    if (name != s_.next_sequences.end() && name->second == 0) s_.next_sequences.erase(name);
    closed = SavedWriter();
  }

  void apply(const event::Appended& e) {
    SavedWriter& by = writer(e.writer);
    const auto granted = std::find(by.granted.begin(), by.granted.end(), e.chunk);
    if (granted == by.granted.end()) refuse("chunk", e.chunk);
    stream(by.pool, by.stream).slots.push_back(e.chunk);
    by.granted.erase(granted);
  }

  void apply(const event::StreamTrimmed& e) {
    SavedStream& of = stream(e.pool, e.stream);
    const uint64_t count = e.first_chunk - of.first_chunk;
    if (e.first_chunk < of.first_chunk || count > of.slots.size()) refuse("chunk", e.first_chunk);
    of.slots.erase(of.slots.begin(), of.slots.begin() + static_cast<int64_t>(count));
    of.first_chunk = e.first_chunk;
  }

  void apply(const event::StreamSaved& e) {
    std::vector<SavedStream>& streams = at(s_.streams, e.pool, "pool");
    SavedStream& saved = grown_to(streams, e.stream, "stream");
    saved.is_open = e.is_open != 0;
    saved.first_chunk = e.first_chunk;
    saved.first_of_writer = e.first_of_writer;
    const std::vector<uint32_t> slots = in_.values<uint32_t>(e.num_chunks);
    saved.slots.assign(slots.begin(), slots.end());
  }

  void apply(const event::ChunksSaved& e) {
    std::vector<SavedChunk>& chunks = at(s_.chunks, e.pool, "pool");
    if (e.first != chunks.size()) refuse("chunk", e.first);
    const std::vector<SavedChunk> more = in_.values<SavedChunk>(e.count);
    chunks.insert(chunks.end(), more.begin(), more.end());
  }

  void apply(const event::Inserted& e) {
    SavedTable& to = table(e.table);
    const bool is_key = e.key == key_of(serial_of(e.key), slot_of(e.key));
    if (!is_key) refuse("key", static_cast<uint64_t>(e.key));
    SavedItem& item = grown_to(to.items, slot_of(e.key), "key");
    item = {e.key, e.steps, e.priority, e.times_sampled};
    ++to.num_inserts;
    to.num_serials = serial_before(to.num_serials + kSerialMask + 1, e.key) + 1;
  }

  void apply(const event::Lent& e) {
    SavedLoan loan{e.session, e.table, in_.values<int64_t>(e.count), {}};
    loan.steps = in_.values<StepRange>(e.count);
    SavedTable& of = table(e.table);
    s_.loans.insert_or_assign(e.lease, std::move(loan));
    of.num_samples += e.count;
    s_.next_lease = std::max(s_.next_lease, e.lease + 1);
  }

  void apply(const event::Acknowledged& e) {
    const SavedLoan& loan = found(s_.loans, e.lease, "lease");
    SavedTable& of = table(loan.table);
    for (const int64_t key : loan.keys) {
      SavedItem* item = item_of(of, key);
      if (item != nullptr) ++item->times_sampled;
    }
    end_loan(e.lease);
  }

  void end_loan(uint64_t lease) { s_.loans.erase(lease); }

  // Gives back the uses of a loan, as Table::give_back() does.
  void give_back(const SavedLoan& loan) {
    SavedTable& of = table(loan.table);
    for (const int64_t key : loan.keys) of.num_samples -= item_of(of, key) != nullptr ? 1 : 0;
  }

  void end_session(uint32_t session) {
    for (uint32_t i = 0; i < s_.writers.size(); ++i) {
      if (!s_.writers[i].name.empty() && s_.writers[i].session == session) close_writer(i);
    }
    for (auto it = s_.loans.begin(); it != s_.loans.end();) {
      if (it->second.session == session) {
        give_back(it->second);
        it = s_.loans.erase(it);
      } else {
        ++it;
      }
    }
    if (s_.sessions.erase(session) == 0) refuse("session", session);
  }

  void apply(const event::PrioritiesSet& e) {
    SavedTable& of = table(e.table);
    const std::vector<int64_t> keys = in_.values<int64_t>(e.count);
    const std::vector<float> priorities = in_.values<float>(e.count);
    for (size_t i = 0; i < keys.size(); ++i) {
      SavedItem* item = item_of(of, keys[i]);
      if (item != nullptr) item->priority = priorities[i];
    }
  }

  State& s_;
  Reader in_;
};

}  // namespace

uint64_t State::most_entries = kMaxItems;

void State::apply(std::span<const std::byte> records, size_t* num_applied) {
  Reader in(records);
  while (!in.is_at_end()) {
    const auto head = in.value<Log::Head>();
    if (head.num_bytes < sizeof head || head.num_bytes % 8 != 0) refuse("record", head.num_bytes);
    Step(this, Reader(in.take(head.num_bytes - sizeof head))).run(head.kind);
    if (num_applied != nullptr) *num_applied += head.num_bytes;
  }
}

}  // namespace tengen::store::engine
