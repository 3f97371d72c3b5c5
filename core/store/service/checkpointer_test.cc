// Stores that are lost with their memory, and go on with what their disk has.

#include "store/service/checkpointer.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "store/service/numbers_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

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
  TENGEN_CHECK(state_numbers(folder.path).size() == 1);
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
        TENGEN_CHECK(writer.writer.flush(in_time()));
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
  constexpr uint64_t kNumRows = kNumberSlots + 10;
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

}  // namespace

int main() {
  check_checkpoints();
  check_sync();
  check_full_disk();
  check_close();
  return 0;
}
