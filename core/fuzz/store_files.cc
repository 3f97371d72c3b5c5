// Fuzz targets for the files of a store: states, logs and the last mark.

#include <fcntl.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/disk_file.h"
#include "base/error.h"
#include "base/rng.h"
#include "fuzz/scratch_folder.h"
#include "fuzz/target.h"
#include "store/disk/durable_log.h"
#include "store/disk/log_file.h"
#include "store/disk/state_files.h"
#include "store/engine/engine_testing.h"
#include "store/state/state.h"

namespace tengen::fuzz {
namespace {

using store::engine::Client;
using store::engine::Loan;
using store::engine::State;
using store::engine::World;

// Returns the log records of a store after `num_commands` random commands.
std::string records_of(bool has_disk, uint64_t seed, int num_commands) {
  World world(has_disk, has_disk);
  Rng rng(seed, 0, 0, 0, Purpose::kTest);
  std::vector<Client> clients;
  uint64_t num_names = 0;
  for (int i = 0; i < num_commands; ++i) {
    (void)store::engine::act(rng, world, clients, &num_names);
    if (has_disk && rng.below(3) == 0) world.end_transfers();
    world.take();
  }
  return as_text(std::span<const std::byte>(world.records));
}

// Restores a store with the same tables from `state`, and samples all items. After a loss of
// memory, all steps are on the disk, which does not exist here, so the store is only restored.
void go_on(State state, bool has_disk, bool loses_memory) {
  World world(has_disk, has_disk);
  if (loses_memory) {
    std::vector<const store::engine::Schema*> schemas;
    for (uint32_t i = 0; i < world.engine.num_pools(); ++i) {
      schemas.push_back(&world.engine.pool(i).schema());
    }
    std::vector<uint32_t> num_promised;
    for (uint32_t i = 0; i < world.engine.num_tables(); ++i) {
      num_promised.push_back(world.engine.table(i).config().num_promised());
    }
    state.lose_memory(schemas, num_promised);
  }
  world.engine.restore(state);
  if (loses_memory) return;
  store::engine::Engine& engine = world.engine;
  const store::engine::SessionId session = engine.begin_session();
  for (uint32_t table = 0; table < engine.num_tables(); ++table) {
    const store::engine::Pool& pool = engine.pool(engine.pool_of(table));
    Loan loan;
    for (int i = 0; i < 50 && engine.sample(session, table, 1, &loan); ++i) {
      for (int wait = 0; !loan.is_ready && wait < 20; ++wait) {
        world.end_transfers();
        (void)engine.collect(&loan);
      }
      for (const store::engine::Piece& piece : loan.pieces) {
        expect(piece.slot < pool.slots().num_slots() &&
                   piece.offset + piece.num_steps <= pool.schema().steps_per_chunk(),
               "a piece lies in a slot");
      }
      if (loan.is_ready) engine.ack(session, loan.lease, {});
      loan = {};
    }
  }
  for (const auto& [id, saved] : state.sessions) {
    while (engine.end_session(id)) {
    }
  }
  while (engine.end_session(session)) {
  }
}

void read_state_bytes(std::string_view bytes) {
  const bool has_disk = take_byte(&bytes) % 2 == 1;
  try {
    State state;
    state.apply(as_bytes(bytes));
    std::vector<std::byte> written;
    state.write([&](std::span<const std::byte> some) {
      written.insert(written.end(), some.begin(), some.end());
    });
    State again;
    again.apply(written);
    if (has_disk) {
      try {
        go_on(again, true, true);
      } catch (const Error&) {
      }
    }
    go_on(again, has_disk, false);
  } catch (const Error&) {
  }
}

constexpr uint64_t kWriter = 77;

template <class T>
void put(std::string* to, const T& value) {
  to->append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string frame_at(uint64_t offset, store::FrameKind kind, std::string_view payload) {
  store::FrameHead head{kind, 0, payload.size()};
  head.checksum = store::checksum_of(kWriter, offset, head, as_bytes(payload));
  std::string frame;
  put(&frame, head);
  return frame.append(payload);
}

// Returns a log that contains `records` and then a mark.
std::string log_of(std::string_view records) {
  store::LogHeader header{store::kStateVersion, kWriter, 0, 0};
  header.checksum = store::checksum_of(header);
  std::string log;
  put(&log, header);
  log += frame_at(log.size(), store::FrameKind::kRecords, records);
  std::string mark;
  put(&mark, store::LogMark{records.size(), 1});
  return log + frame_at(log.size(), store::FrameKind::kMark, mark);
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  const DiskFile file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(0, as_bytes(bytes));
}

// Loads a folder in which one file has arbitrary bytes: the log, the records of a valid log, the
// last mark, or the state.
void read_folder(std::string_view bytes) {
  const unsigned which = take_byte(&bytes) % 4;
  const ScratchFolder folder;
  const std::string path = folder.path();
  try {
    (void)store::write_state(path, 0, State(), /*is_synced=*/false);
    write(store::log_path(path, 0), which == 0   ? std::string(bytes)
                                    : which == 1 ? log_of(bytes)
                                                 : log_of({}));
    if (which == 2) write(path + "/state-mark", bytes);
    if (which == 3) write(store::state_path(path, 0), bytes);
    (void)store::DurableLog::load(path);
  } catch (const Error&) {
  }
}

std::vector<std::string> state_seeds() {
  std::vector<std::string> seeds;
  for (const uint64_t seed : {1, 2}) {
    seeds.push_back(std::string(1, '\0') + records_of(false, seed, 150));
    seeds.push_back("\1" + records_of(true, seed, 150));
  }
  return seeds;
}

std::vector<std::string> folder_seeds() {
  const std::string records = records_of(true, 3, 60);
  const ScratchFolder folder;
  store::LastMarkFile(folder.path()).put({{0, kWriter, 96}, true});
  const std::vector<std::byte> mark = read_file(folder.path() + "/state-mark");
  (void)store::write_state(folder.path(), 1, State(), false);
  const std::vector<std::byte> state = read_file(store::state_path(folder.path(), 1));
  return {std::string(1, '\0') + log_of(records), "\1" + records, "\2" + as_text(std::span(mark)),
          "\3" + as_text(std::span(state))};
}

}  // namespace

std::vector<Target> store_file_targets() {
  // Lists with millions of entries would need too much memory in a test.
  State::most_entries = 1 << 16;
  return {{"store_state", read_state_bytes, state_seeds},
          {"store_folder", read_folder, folder_seeds}};
}

}  // namespace tengen::fuzz
