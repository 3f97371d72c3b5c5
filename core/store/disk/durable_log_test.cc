// Durable logs after the loss of a host, and damaged logs.

#include "store/disk/durable_log.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/shortage_testing.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<char>;

Bytes read_file(const fs::path& path) {
  Bytes bytes(fs::file_size(path));
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<int64_t>(bytes.size()));
  return bytes;
}

void write_file(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<int64_t>(bytes.size()));
}

std::map<std::string, Bytes> read_folder(const fs::path& folder) {
  std::map<std::string, Bytes> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = read_file(entry.path());
  }
  return files;
}

void write_folder(const Folder& folder, const std::map<std::string, Bytes>& files) {
  folder.clear();
  for (const auto& [name, bytes] : files) write_file(folder.path / name, bytes);
}

// A durable log of one session, whose description has one byte per record appended so far.
class Described {
 public:
  explicit Described(const Folder& folder) {
    Log log;
    log.add(event::TableAdded{0, 0});
    log.add(event::SessionBegun{0, 0});
    State state;
    state.apply(log.pending());
    log_.emplace(folder.path, state);
  }

  void append(uint32_t count) {
    Log log;
    for (uint32_t i = 0; i < count; ++i) {
      const std::vector<std::byte> bytes(++num_);
      log.add(event::SessionDescribed{0, num_}, std::span(bytes));
    }
    log_->append(log.pending());
  }
  // Passes a start time without zero bytes, because the tests overwrite lost bytes with zeros.
  void mark() { TENGEN_CHECK(log_->mark(log_->position(), -1, {})); }

 private:
  std::optional<DurableLog> log_;
  uint32_t num_ = 0;
};

// Returns the number of records in the last checkpoint, or -1 if there is no checkpoint.
int num_records(const Folder& folder) {
  const std::optional<State> state = DurableLog::load(folder.path);
  return state ? static_cast<int>(state->sessions.at(0).description.size()) : -1;
}

bool is_refused(const Folder& folder, const std::string& name) {
  try {
    (void)DurableLog::load(folder.path);
  } catch (const Error& error) {
    return std::string(error.what()).find(name) != std::string::npos;
  }
  return false;
}

// A lost host leaves an arbitrary part of the unsynced bytes, possibly with other contents. The
// previous checkpoint stays intact.
void check_torn_logs() {
  Folder folder("durable_log"), lost("durable_log_lost");
  Described described(folder);
  described.append(50);
  described.mark();
  const auto before = read_folder(folder.path);
  described.append(40);
  described.mark();
  const Bytes bytes = read_file(folder.path / "log-0");
  const uint64_t first = before.at("log-0").size();
  const auto num_records_of = [&](const Bytes& some) {
    auto files = before;
    files["log-0"] = some;
    write_folder(lost, files);
    return num_records(lost);
  };
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  const uint32_t num_behind = static_cast<uint32_t>(bytes.size() - first);
  TENGEN_CHECK(num_records_of(bytes) == 90);
  for (int i = 0; i < 200; ++i) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<int64_t>(first + rng.below(num_behind)));
    TENGEN_CHECK(num_records_of(cut) == 50);
    cut.resize(bytes.size());  // zeros, as in blocks that were never written
    TENGEN_CHECK(num_records_of(cut) == 50);
    Bytes flipped = bytes;
    flipped[first + rng.below(num_behind)] ^= static_cast<char>(1 << rng.below(8));
    TENGEN_CHECK(num_records_of(flipped) == 50);
  }
}

// Damage to any part of a confirmed checkpoint is detected, and loading does not modify the files.
void check_damage() {
  Folder folder("durable_log"), damaged("durable_log_damaged");
  std::map<std::string, Bytes> early;
  {
    Described described(folder);
    described.append(50);
    described.mark();
    early = read_folder(folder.path);
    described.append(40);
    described.mark();
    described.append(3);
    described.mark();
  }
  const auto whole = read_folder(folder.path);
  TENGEN_CHECK(num_records(folder) == 93);
  const auto is_missed = [&](const std::map<std::string, Bytes>& files, const std::string& name) {
    write_folder(damaged, files);
    return is_refused(damaged, name) && read_folder(damaged.path) == files;
  };
  Rng rng(2, 0, 0, 0, Purpose::kTest);
  for (const auto& [name, bytes] : whole) {
    const uint32_t num_bytes = static_cast<uint32_t>(bytes.size());
    for (int i = 0; i < 100; ++i) {
      auto files = whole;
      files[name][rng.below(num_bytes)] ^= static_cast<char>(1 << rng.below(8));
      TENGEN_CHECK(is_missed(files, name));
      files = whole;
      const uint32_t begin = rng.below(num_bytes);
      files[name].resize(begin);
      TENGEN_CHECK(is_missed(files, name));
      files[name].resize(num_bytes);  // zeros
      if (files[name] != whole.at(name)) TENGEN_CHECK(is_missed(files, name));
    }
    if (name == "state-mark") continue;
    auto files = whole;
    files.erase(name);
    TENGEN_CHECK(is_missed(files, name == "log-0" ? name : damaged.path.string()));
  }
  // If `state-mark` is out of date, two later marks in the log still prove the damage.
  const uint32_t first = static_cast<uint32_t>(early.at("log-0").size());
  for (int i = 0; i < 100; ++i) {
    auto files = whole;
    files["state-mark"] = early.at("state-mark");
    files["log-0"][first + rng.below(1000)] ^= 1;
    TENGEN_CHECK(is_missed(files, "log-0"));
  }
}

// The previous contents of a folder stay until a resumed store has its own checkpoint.
void check_next_store() {
  Folder folder("durable_log");
  {
    Described described(folder);
    described.append(50);
    described.mark();
  }
  const auto before = read_folder(folder.path);
  {
    Described next(folder);
    next.append(7);
    TENGEN_CHECK(num_records(folder) == 50);
    for (const auto& [name, bytes] : before) TENGEN_CHECK(read_file(folder.path / name) == bytes);
    next.mark();
    TENGEN_CHECK(num_records(folder) == 7);
  }
  TENGEN_CHECK(!fs::exists(folder.path / "log-0") && !fs::exists(folder.path / "state-0"));
  TENGEN_CHECK(num_records(folder) == 7);
}

// Many logs are compacted into few states, which preserve the records up to the last checkpoint.
void check_compaction() {
  Folder folder("checkpointer");
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  State state;
  state.apply(log.pending());
  {
    DurableLog kept(folder.path, state, 1 << 12);
    const std::vector<std::byte> much(300 << 10);
    for (uint32_t i = 1; i <= 50; ++i) {
      log.clear();
      // Large enough to fill a log.
      log.add(event::SessionDescribed{0, static_cast<uint32_t>(much.size())}, std::span(much));
      log.add(event::SessionDescribed{0, i}, std::span(much).first(i));
      kept.append(log.pending());
      if (i <= 40) TENGEN_CHECK(kept.mark(kept.position(), {}, {}));
    }
    // The log that contains the last checkpoint and the records after it is not compacted.
    while (folder.count("log-") > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    TENGEN_CHECK(state_numbers(folder.path).size() == 1 && folder.count("log-") == 1);
    TENGEN_CHECK(kept.trouble().empty());
  }
  const std::optional<State> last = DurableLog::load(folder.path);
  TENGEN_CHECK(last && last->sessions.at(0).description.size() == 40);
}

// A log with a missing part is rejected if more records follow the missing part.
void check_damaged_logs() {
  Folder folder("checkpointer");
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  // A state so large that the logs are too small to be compacted.
  const std::vector<std::byte> much(4 << 20);
  log.add(event::SessionDescribed{0, static_cast<uint32_t>(much.size())}, std::span(much));
  State state;
  state.apply(log.pending());
  {
    DurableLog kept(folder.path, state, 1 << 20);
    for (uint32_t i = 0; i < 6; ++i) {
      log.clear();
      log.add(event::SessionDescribed{0, 300 << 10}, std::span(much).first(300 << 10));
      kept.append(log.pending());
    }
    TENGEN_CHECK(kept.mark(kept.position(), {}, {}));
  }
  TENGEN_CHECK(folder.count("log-") == 2 && DurableLog::load(folder.path));
  fs::resize_file(log_path(folder.path, 0), fs::file_size(log_path(folder.path, 0)) - 1);
  TENGEN_CHECK(throws([&] { DurableLog::load(folder.path); }));
}

// Loads the folder of an open log. Retries, since compaction may remove logs while they are read.
std::optional<State> load_open(const fs::path& path) {
  for (int tries = 1;; ++tries) {
    try {
      return DurableLog::load(path);
    } catch (const Error&) {
      if (tries == 100) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

// While files cannot grow, as on a full disk, records wait in memory; all of them are stored when
// space is available again. The last checkpoint can be loaded at any moment in between.
void check_room_again() {
  Folder folder("checkpointer");
  std::signal(SIGXFSZ, SIG_IGN);
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  log.add(event::SessionBegun{1, 0});
  State state;
  state.apply(log.pending());
  const std::vector<std::byte> much(300 << 10);
  uint32_t last = 0;
  {
    DurableLog kept(folder.path, state, 1 << 20);
    const auto append = [&] {
      log.clear();
      ++last;
      log.add(event::SessionDescribed{1, static_cast<uint32_t>(much.size())}, std::span(much));
      log.add(event::SessionDescribed{0, last}, std::span(much).first(last));
      return kept.append(log.pending()) == DurableLog::Append::kDone;
    };
    const auto kept_last = [&] {
      const std::optional<State> found = load_open(folder.path);
      return found && found->sessions.at(0).description.size() == last;
    };
    for (int again = 0; again < 3; ++again) {
      // Either a record or a mark is the first write to fail.
      const bool is_by_mark = again == 1;
      for (int i = 0; i < (is_by_mark ? 2 : 5); ++i) TENGEN_CHECK(append());
      TENGEN_CHECK(kept.mark(kept.position(), 1, {}) && kept_last());
      const uint32_t marked = last;
      {
        const SmallFiles small;
        for (int i = 0; i < (is_by_mark ? 0 : 9); ++i) append();
        TENGEN_CHECK(!kept.mark(kept.position(), 2, {}) && !kept.trouble().empty());
        for (int i = 0; i < 3; ++i) {
          TENGEN_CHECK(!kept.resume() && !append());
          const std::optional<State> found = load_open(folder.path);
          TENGEN_CHECK(found && found->sessions.at(0).description.size() == marked);
        }
      }
      TENGEN_CHECK(kept.resume() && kept.trouble().empty());
      // No checkpoint has been marked since.
      const std::optional<State> found = load_open(folder.path);
      TENGEN_CHECK(found && found->sessions.at(0).description.size() == marked);
      TENGEN_CHECK(append() && kept.mark(kept.position(), 3, {}) && kept_last());
    }
    TENGEN_CHECK(!kept.is_over());
  }
  const std::optional<State> found = load_open(folder.path);
  TENGEN_CHECK(found && found->sessions.at(0).description.size() == last);
}

// A log that runs out of memory, in any of its calls of `new`, resumes without losing a record when
// memory is available again.
void check_memory_again() {
  Folder folder("checkpointer");
  std::signal(SIGXFSZ, SIG_IGN);
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  State state;
  state.apply(log.pending());
  const std::vector<std::byte> much(40 << 10);
  uint32_t last = 0;
  DurableLog kept(folder.path, state, 1 << 20);
  const auto append = [&] {
    log.clear();
    ++last;
    log.add(event::SessionDescribed{0, last}, std::span(much).first(last));
    log.add(event::SessionBegun{last, 0});
    log.add(event::SessionDescribed{last, 0x2000}, std::span(much).first(0x2000));
    num_news_left = last % 3;
    const DurableLog::Append appended = kept.append(log.pending());
    num_news_left = -1;
    if (appended == DurableLog::Append::kNoMemory) {
      TENGEN_CHECK(kept.append(log.pending()) != DurableLog::Append::kNoMemory);
    }
  };
  for (int i = 0; i < 100; ++i) append();
  {
    const SmallFiles small;
    for (int i = 0; i < 100; ++i) append();
    TENGEN_CHECK(!kept.resume());
    for (int i = 0; i < 5; ++i) append();
  }
  for (int64_t num_news = 0;; ++num_news) {
    num_news_left = num_news;
    const bool goes_on = kept.resume();
    num_news_left = -1;
    TENGEN_CHECK(!kept.is_over());
    if (goes_on) break;
    if (num_news % 16 == 0) append();
  }
  TENGEN_CHECK(kept.mark(kept.position(), 1, {}));
  const std::optional<State> found = load_open(folder.path);
  TENGEN_CHECK(found && found->sessions.at(0).description.size() == last);
  TENGEN_CHECK(found->sessions.size() == last + 1);
}

}  // namespace

int main() {
  check_memory_again();
  check_room_again();
  check_torn_logs();
  check_damage();
  check_next_store();
  check_compaction();
  check_damaged_logs();
  return 0;
}
