#include <algorithm>

#include "store/state/state.h"

namespace tengen::store::engine {
namespace {

// The number of bytes after which write() passes its records to `take`.
constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kChunksInRecord = size_t{1} << 16;

std::span<const char> bytes_of(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace

void State::write(const std::function<void(std::span<const std::byte>)>& take) const {
  Log log;
  const auto flush = [&](size_t most) {
    if (log.pending().size() <= most) return;
    take(log.pending());
    log.clear();
  };
  for (uint32_t i = 0; i < tables.size(); ++i) log.add(event::TableAdded{i, tables[i].pool});
  for (uint32_t i = 0; i < num_slabs.size(); ++i) log.add(event::SlabsGrown{i, num_slabs[i]});
  for (const auto& [id, session] : sessions) {
    const std::vector<std::byte>& description = session.description;
    log.add(event::SessionBegun{id, 0});
    log.add(event::SessionDescribed{id, static_cast<uint32_t>(description.size())},
            std::span(description));
    log.add(event::SessionProgressed{id, 0, session.progress});
  }
  for (const auto& [name, sequence] : next_sequences) {
    log.add(event::SequenceSaved{sequence, static_cast<uint32_t>(name.size()), 0}, bytes_of(name));
    flush(kPieceBytes);
  }
  for (uint32_t i = 0; i < writers.size(); ++i) {
    const SavedWriter& writer = writers[i];
    if (writer.name.empty()) continue;
    const uint32_t num_bytes = static_cast<uint32_t>(writer.name.size());
    log.add(event::WriterOpened{i, writer.session, writer.pool, writer.stream, num_bytes, 0},
            bytes_of(writer.name));
    for (const uint32_t chunk : writer.granted) log.add(event::Granted{i, chunk});
  }
  for (uint32_t pool = 0; pool < chunks.size(); ++pool) {
    const std::span<const SavedChunk> all(chunks[pool]);
    for (size_t first = 0; first < all.size(); first += kChunksInRecord) {
      const auto some = all.subspan(first, std::min(kChunksInRecord, all.size() - first));
      log.add(event::ChunksSaved{pool, static_cast<uint32_t>(first),
                                 static_cast<uint32_t>(some.size()), 0},
              some);
      flush(kPieceBytes);
    }
  }
  for (uint32_t i = 0; i < num_places.size(); ++i) log.add(event::PlacesUsed{i, num_places[i]});
  for (const auto& [place, all] : open_steps) {
    for (const SavedSteps& some : all) {
      log.add(
          event::StepsSaved{place.first, place.second, some.first, some.count, some.bytes.size()},
          std::span(some.bytes));
      flush(kPieceBytes);
    }
  }
  for (uint32_t pool = 0; pool < streams.size(); ++pool) {
    for (uint32_t i = 0; i < streams[pool].size(); ++i) {
      const SavedStream& s = streams[pool][i];
      const std::vector<uint32_t> slots(s.slots.begin(), s.slots.end());
      log.add(event::StreamSaved{pool, i, s.first_chunk, s.first_of_writer, s.is_open ? 1u : 0u,
                                 static_cast<uint32_t>(slots.size())},
              std::span(slots));
      flush(kPieceBytes);
    }
  }
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const SavedTable& table = tables[i];
    if (table.limits) log.add(event::LimitsSet{i, *table.limits});
    if (table.capacity) {
      log.add(event::CapacitySet{i, table.capacity->first, table.capacity->second});
    }
    for (const SavedItem& item : table.items) {
      if (item.key < 0) continue;
      log.add(event::Inserted{item.key, item.steps, i, 0, item.priority, item.times_sampled});
      flush(kPieceBytes);
    }
  }
  for (const auto& [lease, loan] : loans) {
    log.add(
        event::Lent{lease, loan.session, loan.table, static_cast<uint32_t>(loan.keys.size()), 0},
        std::span(loan.keys), std::span(loan.steps));
    flush(kPieceBytes);
  }
  // Writes the counts last, because records of items and loans change them.
  for (uint32_t i = 0; i < tables.size(); ++i) {
    const SavedTable& table = tables[i];
    log.add(event::TableCounted{i, table.num_inserts, table.num_samples, table.num_serials});
  }
  log.add(event::Counted{next_session, next_lease, num_restarts});
  flush(0);
}

}  // namespace tengen::store::engine
