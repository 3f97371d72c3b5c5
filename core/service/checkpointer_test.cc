// Stores that are lost with their memory, and go on with what their disk has.

#include "service/checkpointer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "service/numbers_testing.h"

using namespace tengen;
using namespace tengen::replay;
using namespace tengen::service;

namespace {

namespace fs = std::filesystem;

// In a child that is killed then.
template <class F>
void run_and_kill(F&& f) {
  const pid_t child = fork();
  if (child == 0) {
    f();
    raise(SIGKILL);
  }
  int status;
  TENGEN_CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

// What is there after the last checkpoint is gone; what it had is there, more than memory holds.
void check_checkpoints() {
  Folder folder("checkpointer");
  run_and_kill([&] {
    const auto store = make_numbers(folder, Durability::kCheckpoint);
    NumberWriter writer(store.get());
    writer.insert(1001);
    writer.checkpoint();
    writer.insert(99);
  });
  for (int round = 0; round < 2; ++round) {
    run_and_kill([&] {
      Resumed resumed;
      const auto store = make_numbers(folder, Durability::kCheckpoint, 1 << 12, &resumed);
      TENGEN_CHECK(resumed.num_lost == 0);
      TENGEN_CHECK(NumberWriter(store.get()).next == 1001);
      TENGEN_CHECK(use_numbers(*store) == range(0, 1001));  // without a checkpoint of it
    });
  }
  {
    const auto store = make_numbers(folder, Durability::kCheckpoint);
    NumberWriter(store.get()).insert();
    store->close();
  }
  TENGEN_CHECK(folder.count("state-") == 1);
  const auto store = make_numbers(folder, Durability::kCheckpoint);
  TENGEN_CHECK(use_numbers(*store) == range(0, 1002));
}

// A flush of a store that syncs is a promise.
void check_sync() {
  Folder folder("checkpointer");
  int64_t end = 0;
  for (int round = 0; round < 5; ++round) {
    int told[2];
    TENGEN_CHECK(pipe(told) == 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto store = make_numbers(folder, Durability::kSync);
      NumberWriter writer(store.get());
      TENGEN_CHECK(writer.next >= end);
      while (true) {
        writer.insert(7);
        TENGEN_CHECK(writer.writer.port().flush(in_time()));
        (void)!write(told[1], &writer.next, sizeof writer.next);
      }
    }
    for (int i = 0; i < 20; ++i) TENGEN_CHECK(read(told[0], &end, sizeof end) == sizeof end);
    kill(child, SIGKILL);
    TENGEN_CHECK(waitpid(child, nullptr, 0) == child);
    fcntl(told[0], F_SETFL, O_NONBLOCK);
    while (read(told[0], &end, sizeof end) == sizeof end) {
    }
    close(told[0]);
    close(told[1]);
  }
  const auto store = make_numbers(folder, Durability::kSync);
  const std::vector<int64_t> numbers = use_numbers(*store);
  TENGEN_CHECK(static_cast<int64_t>(numbers.size()) >= end);
  TENGEN_CHECK(numbers == range(0, static_cast<int64_t>(numbers.size())));
}

// A disk that is full of live items and of what the last checkpoint names goes on all the same.
void check_full_disk() {
  Folder folder("checkpointer");
  constexpr uint64_t kNumRows = kNumSlots + 10;
  {
    const auto store = make_numbers(folder, Durability::kCheckpoint, kNumRows);
    NumberWriter writer(store.get());
    for (int i = 0; i < 4; ++i) {
      writer.insert(500);
      writer.checkpoint();
    }
    // One makes room for many chunks, of which there were 500.
    TENGEN_CHECK(store->checkpointer()->num_made() < 250);
  }
  const auto store = make_numbers(folder, Durability::kCheckpoint, kNumRows);
  const std::vector<int64_t> numbers = use_numbers(*store);
  TENGEN_CHECK(numbers.size() > 100);
  TENGEN_CHECK(numbers == range(2000 - static_cast<int64_t>(numbers.size()), 2000));
}

// Who is told that an item is in finds it in the next store, also where this one is being closed.
void check_close() {
  for (int round = 0; round < 10; ++round) {
    Folder folder("checkpointer");
    int64_t next = 0;
    {
      const auto store = make_numbers(folder, Durability::kCheckpoint);
      std::thread thread([&] {
        try {
          NumberWriter writer(store.get());
          while (true) {
            writer.insert();
            next = writer.next;
          }
        } catch (const Error&) {
        }
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
      store->close();
      thread.join();
    }
    const auto store = make_numbers(folder, Durability::kCheckpoint);
    TENGEN_CHECK(use_numbers(*store) == range(0, next));
  }
}

// A host that is lost leaves any part of what was not synced, and may leave other bytes there; the
// checkpoint before is not touched by it.
void check_torn_logs() {
  Folder folder("checkpointer");
  const auto store = make_numbers(folder, Durability::kCheckpoint);
  NumberWriter writer(store.get());
  writer.insert(50);
  writer.checkpoint();
  const fs::path log = log_path(folder.path, 0);
  const uint64_t first = fs::file_size(log);
  writer.insert(40);
  writer.checkpoint();
  std::vector<char> bytes(fs::file_size(log));
  std::ifstream(log, std::ios::binary).read(bytes.data(), static_cast<int64_t>(bytes.size()));
  const auto num_items_of = [&](const std::vector<char>& some) {
    std::ofstream(log, std::ios::binary | std::ios::trunc)
        .write(some.data(), static_cast<int64_t>(some.size()));
    const std::optional<State> state = DurableLog::load(folder.path);
    return state ? state->tables[0].items.size() : 0;
  };
  Rng rng(1, 0, 0, 0, Purpose::kTest);
  const uint32_t num_behind = static_cast<uint32_t>(bytes.size() - first);
  TENGEN_CHECK(num_items_of(bytes) == 90);
  for (int i = 0; i < 200; ++i) {
    std::vector<char> cut(bytes.begin(),
                          bytes.begin() + static_cast<int64_t>(first + rng.below(num_behind)));
    TENGEN_CHECK(num_items_of(cut) == 50);
    cut.resize(bytes.size());  // zeros, as of blocks that were never written
    TENGEN_CHECK(num_items_of(cut) == 50);
    std::vector<char> flipped = bytes;
    flipped[first + rng.below(num_behind)] ^= static_cast<char>(1 << rng.below(8));
    TENGEN_CHECK(num_items_of(flipped) == 50);
    // What holds the only checkpoint.
    cut.assign(bytes.begin(), bytes.begin() + static_cast<int64_t>(first));
    cut[16 + rng.below(static_cast<uint32_t>(first) - 16)] ^= 1;
    TENGEN_CHECK(num_items_of(cut) == 0);
  }
}

// Many logs become few states, and what they say up to the last checkpoint stays.
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
      // So much that a log is full of it.
      log.add(event::SessionDescribed{0, static_cast<uint32_t>(much.size())}, std::span(much));
      log.add(event::SessionDescribed{0, i}, std::span(much).first(i));
      kept.append(log.pending());
      if (i <= 40) TENGEN_CHECK(kept.mark(kept.position(), {}, {}));
    }
    // Those behind the last checkpoint stay logs.
    while (folder.count("log-") > 11) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    TENGEN_CHECK(folder.count("state-") == 1 && folder.count("log-") == 11);
    TENGEN_CHECK(kept.trouble().empty());
  }
  const std::optional<State> last = DurableLog::load(folder.path);
  TENGEN_CHECK(last && last->sessions.at(0).description.size() == 40);
}

// A log that lacks a part, with more behind it, is refused: nobody knows what it said.
void check_damaged_logs() {
  Folder folder("checkpointer");
  Log log;
  log.add(event::TableAdded{0, 0});
  log.add(event::SessionBegun{0, 0});
  // A state so large that the logs are not worth another.
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

}  // namespace

int main() {
  check_checkpoints();
  check_sync();
  check_full_disk();
  check_close();
  check_torn_logs();
  check_compaction();
  check_damaged_logs();
  return 0;
}
