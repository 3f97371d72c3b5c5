#include "store/disk/keeper.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "base/shortage_testing.h"
#include "store/clients/writer.h"
#include "store/service/service_testing.h"
#include "store/service/store.h"
#include "transport/small_folder_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMemoryBytes = 1 << 20;
std::unique_ptr<Store> make_store(const Folder& folder, bool goes_on) {
  TableConfig config;
  config.name = "queue";
  config.sampler = selector_of("fifo");
  config.max_times_sampled = 1;
  auto store = store_of(folder.path, kMemoryBytes, Schema({{"x", "i8", {}, 0}}, 4), config);
  const auto sessions = store->keep(goes_on).sessions;
  TENGEN_CHECK(sessions.empty());  // the sessions of this process end with it
  return store;
}

// Inserts numbers until it is killed, starting after the last one that the store received from this
// writer, and uses every second batch. Reports each inserted and each used number.
[[noreturn]] void live(const Folder& folder, bool goes_on, int pipe_end) {
  alarm(120);  // in case the parent does not live to kill it
  const auto store = make_store(folder, goes_on);
  const Schema schema({{"x", "i8", {}, 0}}, 4);
  Writer writer(store->open_writer("a", 0), schema, store->slab_map(0), 1);
  const auto sampler = open_sampler(*store, 0, 3, 0);
  const auto tell = [&](int64_t word) { TENGEN_CHECK(write(pipe_end, &word, 8) == 8); };
  for (int64_t number = static_cast<int64_t>(writer.next_sequence());; ++number) {
    write_item(writer, &number);
    tell(number);
    if (number % 4 != 0) continue;
    Delivery delivery;
    if (!next(*sampler, Deadline::min(), &delivery)) continue;
    if (number % 8 == 0) {
      sampler->give_back(delivery.lease);
      continue;
    }
    // If the process is killed between this report and the acknowledgement, the item may be unused.
    for (const int64_t key : delivery.keys) tell(-1 - serial_of(key));
    sampler->ack(delivery.lease, {});
    tell(INT64_MIN);
  }
}

// The numbers that a process reported before it was killed.
struct Told {
  int64_t newest = -1;
  std::set<int64_t> used;
  std::set<int64_t> perhaps_used;  // the last batch
};

Told listen(int pipe_end, Told told) {
  int64_t word;
  while (read(pipe_end, &word, 8) == 8) {
    if (word >= 0) {
      told.newest = std::max(told.newest, word);
    } else if (word == INT64_MIN) {
      told.used.insert(told.perhaps_used.begin(), told.perhaps_used.end());
      told.perhaps_used.clear();
    } else {
      told.perhaps_used.insert(-1 - word);
    }
  }
  return told;
}

// Inserted items are present exactly once after a kill, and used items do not return.
void check_kills() {
  const Folder folder("keeper");
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  Told told;
  // On a busy machine most processes are killed before they do much, so more rounds are needed.
  for (int round = 0; round < 25 || told.newest <= 1000 || told.used.size() <= 100; ++round) {
    int ends[2];
    TENGEN_CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      ::close(ends[0]);
      live(folder, round > 0, ends[1]);
    }
    ::close(ends[1]);
    const int64_t before = told.newest;
    usleep(2000 + rng.below(40000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    told = listen(ends[0], std::move(told));
    ::close(ends[0]);
    const bool began = told.newest > before;
    const bool has_state = folder.count("state-") > 0;
    TENGEN_CHECK(has_state || !began);
    // Load the state as the next process will.
    if (!has_state) continue;
    const State state = *Keeper::load(folder.path.string());
    const SavedTable& table = state.tables.at(0);
    TENGEN_CHECK(table.num_serials == told.newest + 1 || table.num_serials == told.newest + 2);
    // Serial numbers equal the writer's sequence numbers, because each number is inserted once.
    std::set<int64_t> there;
    for (const SavedItem& item : table.items) {
      if (item.key >= 0) there.insert(serial_of(item.key));
    }
    for (int64_t serial = 0; serial < table.num_serials; ++serial) {
      const bool is_used = told.used.count(serial) != 0;
      if (told.perhaps_used.count(serial) != 0) {
        if (there.count(serial) == 0) told.used.insert(serial);
        continue;
      }
      // If memory is full the oldest items are removed, which would have been used next.
      if (is_used) TENGEN_CHECK(there.count(serial) == 0);
      if (!is_used && serial + 100 > table.num_serials) TENGEN_CHECK(there.count(serial) == 1);
    }
    told.perhaps_used.clear();
    told.newest = table.num_serials - 1;
  }
}

// Logs are compacted into an equivalent state while the store is in use.
void check_compaction() {
  const Folder folder("keeper");
  uint64_t num_sessions = 0;
  {
    const auto store = make_store(folder, false);
    const auto end = in_time();
    while (fs::exists(folder.path / "log-0") || fs::exists(folder.path / "state-0")) {
      TENGEN_CHECK(std::chrono::steady_clock::now() < end);
      store->change([&](Engine& engine) {
        for (int i = 0; i < 1000; ++i, ++num_sessions) engine.end_session(engine.begin_session());
      });
    }
  }
  // Load only now, because a compaction could remove files while they are read.
  const State state = *Keeper::load(folder.path.string());
  TENGEN_CHECK(state.next_session == num_sessions && state.sessions.empty());
  make_store(folder, true);
  TENGEN_CHECK(folder.count("log-") == 1 && folder.count("state-") == 1);
}

// Without space for its files a store continues to serve, and no partial state is left.
void check_no_room() {
  const Folder folder("keeper");
  const auto store = make_store(folder, false);
  TENGEN_CHECK(store->trouble().empty() && folder.count("log-") == 1);
  fs::create_directory(folder.path / "log-1");  // blocks the path of the next log
  store->change([&](Engine& engine) {
    const SessionId session = engine.begin_session();
    for (int i = 0; i < 10000; ++i) engine.note_progress(session, {});
  });
  TENGEN_CHECK(store->trouble().find("will not outlive") != std::string::npos);
  TENGEN_CHECK(folder.count("state-") == 0);
  store->change([](Engine& engine) { engine.begin_session(); });
}

// When space is available again, a later process resumes with the complete state.
void check_room_again() {
  const Folder folder("keeper");
  std::signal(SIGXFSZ, SIG_IGN);
  const auto store = make_store(folder, false);
  uint32_t num_sessions = 0;
  const auto change = [&](int count) {
    store->change([&](Engine& engine) {
      for (int i = 0; i < count; ++i, ++num_sessions) engine.end_session(engine.begin_session());
    });
  };
  for (int again = 0; again < 2; ++again) {
    {
      const SmallFiles small;
      change(10000);
      TENGEN_CHECK(!store->trouble().empty() && folder.count("state-") == 0);
      for (int i = 0; i < 50; ++i) change(1);
      TENGEN_CHECK(!store->trouble().empty() && folder.count("state-") == 0);
    }
    // keep_rest() retries without a change of the store.
    const Deadline end = in_time();
    while (store->keep_rest()) {
      TENGEN_CHECK(std::chrono::steady_clock::now() < end);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    TENGEN_CHECK(store->trouble().empty());
    const State state = *Keeper::load(folder.path.string());
    TENGEN_CHECK(state.next_session == num_sessions);
  }
}

// Appends the records of a session with a description of `num_bytes` bytes.
void describe(Log* log, uint32_t session, uint32_t num_bytes) {
  const std::vector<std::byte> bytes(num_bytes);
  log->add(event::SessionBegun{session, 0});
  log->add(event::SessionDescribed{session, num_bytes}, std::span(bytes));
}

// If there is space for a log but not for the state, no partial state is written.
void check_little_room() {
  constexpr uint64_t kLogBytes = 64 << 10;
  transport::in_small_folder(8 << 20, [](const std::string& folder) {
    const auto fill = [&](const char* name, uint64_t num_bytes) {
      const std::string path = folder + "/" + name;
      const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
      TENGEN_CHECK(file >= 0 && posix_fallocate(file, 0, static_cast<off_t>(num_bytes)) == 0);
      ::close(file);
    };
    Log log;
    log.add(event::TableAdded{0, 0});
    for (uint32_t i = 0; i < 3; ++i) describe(&log, i, 1 << 20);
    State state;
    state.apply(log.pending());
    Keeper keeper(folder, kLogBytes, state);
    fill("most", (4 << 20) + (768 << 10));
    log.clear();
    describe(&log, 3, 1 << 20);
    TENGEN_CHECK(keeper.commit(log.pending()) && keeper.is_behind());
    // No store resumes from an incomplete folder.
    TENGEN_CHECK(!Keeper::load(folder));
    fill("rest", 1 << 20);
    log.clear();
    log.add(event::SessionEnded{0, 0});
    log.add(event::SessionBegun{0, 0});
    for (int i = 0; i < 1000; ++i) {
      TENGEN_CHECK(keeper.commit(log.pending()) && keeper.is_behind());
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::filesystem::remove(folder + "/most");
    const Deadline end = in_time();
    while (keeper.is_behind()) {
      TENGEN_CHECK(std::chrono::steady_clock::now() < end);
      TENGEN_CHECK(keeper.commit({}));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    TENGEN_CHECK(keeper.trouble().empty());
    TENGEN_CHECK(state_numbers(folder) == std::vector<uint64_t>{1});
    const std::optional<State> found = Keeper::load(folder);
    TENGEN_CHECK(found && found->sessions.at(3).description.size() == 1 << 20);
    TENGEN_CHECK(found->sessions.at(0).description.empty());
  });
}

// Records whose commit runs out of memory are committed again, and none is lost.
void check_memory_again() {
  const Folder folder("keeper");
  std::signal(SIGXFSZ, SIG_IGN);
  Log log;
  log.add(event::TableAdded{0, 0});
  State state;
  state.apply(log.pending());
  Keeper keeper(folder.path, 1 << 10, state);
  log.clear();
  uint32_t num_sessions = 0;
  {
    const SmallFiles small;
    for (const int64_t num_news : {0, 5, 20, 40, 80}) {
      for (int i = 0; i < 20; ++i) describe(&log, num_sessions++, 1000);
      num_news_left = num_news;
      const bool is_taken = keeper.commit(log.pending());
      num_news_left = -1;
      TENGEN_CHECK(keeper.is_behind() && !Keeper::load(folder.path));
      if (is_taken) log.clear();
    }
  }
  const Deadline end = in_time();
  while (keeper.is_behind()) {
    TENGEN_CHECK(std::chrono::steady_clock::now() < end);
    if (keeper.commit(log.pending())) log.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  TENGEN_CHECK(log.pending().empty() && keeper.trouble().empty());
  TENGEN_CHECK(Keeper::load(folder.path)->sessions.size() == num_sessions);
}

void check_damage() {
  const Folder folder("keeper");
  TENGEN_CHECK(!Keeper::load(folder.path.string()));
  make_store(folder, false);
  TENGEN_CHECK(Keeper::load(folder.path.string())->tables.size() == 1);
  const auto overwrite = [&](const std::string& name, int64_t at, uint64_t value) {
    const int file = ::open((folder.path / name).c_str(), O_WRONLY);
    TENGEN_CHECK(file >= 0 && pwrite(file, &value, sizeof value, at) == sizeof value);
    ::close(file);
  };
  uint64_t version = 0;
  {
    const int file = ::open((folder.path / "state-0").c_str(), O_RDONLY);
    TENGEN_CHECK(file >= 0 && pread(file, &version, sizeof version, 0) == sizeof version);
    ::close(file);
  }
  const auto refuses = [&] {
    return throws([&] { Keeper::load(folder.path.string()); }) &&
           throws([&] { make_store(folder, true); });
  };
  overwrite("state-0", 0, 99);
  TENGEN_CHECK(refuses());
  overwrite("state-0", 0, version);
  overwrite("log-0", 8, uint64_t{1} << 40);  // beyond the end of the log
  TENGEN_CHECK(refuses());
  overwrite("log-0", 8, 0);
  overwrite("log-0", 0, 99);  // another version
  TENGEN_CHECK(refuses());
  overwrite("log-0", 0, 0);  // killed before the log was begun
  TENGEN_CHECK(!refuses());
}

}  // namespace

int main() {
  check_kills();
  check_compaction();
  check_no_room();
  check_room_again();
  check_little_room();
  check_memory_again();
  check_damage();
  return 0;
}
