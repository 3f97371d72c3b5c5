// Stores that lose their memory and resume from their disk.

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

#include "base/shortage_testing.h"
#include "store/service/numbers_testing.h"
#include "transport/small_folder_testing.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

namespace fs = std::filesystem;

// Runs `f` in a child process that is killed afterwards.
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

// Items after the last checkpoint are lost; items in it remain, even more than fit in memory.
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
      TENGEN_CHECK(use_numbers(*store) == range(0, 1001));  // these uses are in no checkpoint
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

// With Durability::kSync, flushed items survive a kill.
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

// A disk that is full of live items and of rows of the last checkpoint can still be used.
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
    // One checkpoint frees space for many of the 500 chunks, so there are few checkpoints.
    TENGEN_CHECK(store->checkpointer()->num_made() < 250);
  }
  const auto store = make_numbers(folder, Durability::kCheckpoint, kNumRows);
  const std::vector<int64_t> numbers = use_numbers(*store);
  TENGEN_CHECK(numbers.size() > 100);
  TENGEN_CHECK(numbers == range(2000 - static_cast<int64_t>(numbers.size()), 2000));
}

// Confirmed items exist in the next store, even if this store was closing at the time.
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

// The size of a step, one megabyte. With eight steps per chunk, the test leaves a chunk incomplete.
constexpr uint64_t kLongStep = 1 << 20;
std::unique_ptr<Store> make_long_steps(const std::string& directory, uint32_t steps_per_chunk) {
  auto store =
      store_of("", uint64_t{64} << 20, Schema({{"x", "u1", {kLongStep}, 0}}, steps_per_chunk), {},
               DiskConfig{directory, uint64_t{256} << 20, Durability::kCheckpoint,
                          std::chrono::milliseconds(1)});
  (void)store->keep(false);
  return store;
}

Writer writer_of(Store& store) {
  return Writer(store.open_writer("a", 0),
                store.read([](const Engine& engine) { return engine.pool(0).schema(); }),
                store.slab_map(0), 1);
}

// Steps for which neither rows nor the log have space are not packed, because packing would need as
// much memory again and block all other clients.
void check_no_room() {
  transport::in_small_folder(uint64_t{8} << 20, [](const std::string& path) {
    std::filesystem::create_directory(path + "/disk");
    const auto store = make_long_steps(path + "/disk", 1);
    Writer writer = writer_of(*store);
    const std::vector<std::byte> step(kLongStep);
    for (uint64_t i = 0; i < 20; ++i) write_item(writer, step.data());
    TENGEN_CHECK(writer.flush(in_time()));
    std::string reason;
    {
      const LittleMemory little(4 * kLongStep);
      try {
        (void)store->checkpointer()->wait(store->checkpointer()->ask(), in_time());
      } catch (const Error& error) {
        reason = error.what();
      }
    }
    TENGEN_CHECK(reason.find("MiB of steps") != std::string::npos);
    store->checkpointer()->stop();
  });
}

// Steps that a checkpoint had no memory for are in the next one, even if other steps follow.
void check_no_memory() {
  Folder folder("checkpointer");
  run_and_kill([&] {
    const auto store = make_long_steps(folder.path, 8);
    Writer writer = writer_of(*store);
    const auto insert = [&](uint64_t i) {
      const std::vector<std::byte> step(kLongStep, static_cast<std::byte>(i + 1));
      write_item(writer, step.data());
      TENGEN_CHECK(writer.flush(in_time()));
    };
    for (uint64_t i = 0; i < 4; ++i) insert(i);
    Checkpointer& checkpointer = *store->checkpointer();
    {
      const LittleMemory little(2 * kLongStep);
      TENGEN_CHECK(throws([&] { (void)checkpointer.wait(checkpointer.ask(), in_time()); }));
    }
    insert(4);
    TENGEN_CHECK(checkpointer.wait(checkpointer.ask(), in_time(), /*is_patient=*/true));
  });
  const auto store = make_long_steps(folder.path, 8);
  store->read([&](const Engine& engine) {
    TENGEN_CHECK(engine.table(0).size() == 5);
    const Pool& pool = engine.pool(0);
    const std::byte* chunk = pool.slots().at(pool.slot_of(0));
    for (uint64_t i = 0; i < 5; ++i) {
      for (const uint64_t at : {uint64_t{0}, kLongStep - 1}) {
        TENGEN_CHECK(chunk[i * kLongStep + at] == static_cast<std::byte>(i + 1));
      }
    }
    return 0;
  });
}

// While memory is exhausted, waiting for a checkpoint fails instead of blocking.
void check_refusal() {
  Folder folder("checkpointer");
  const auto store = make_numbers(folder, Durability::kSync);
  NumberWriter writer(store.get());
  writer.insert(10);
  TENGEN_CHECK(writer.writer.flush(in_time()));
  Checkpointer& checkpointer = *store->checkpointer();
  {
    const NoMemory none;
    for (int i = 0; i < 3; ++i) {
      TENGEN_CHECK(throws([&] { (void)checkpointer.wait(checkpointer.ask(), in_time()); }));
    }
    TENGEN_CHECK(throws([&] { store->close(); }));
  }
  store->close();
}

}  // namespace

int main() {
  check_no_memory();
  check_no_room();
  check_refusal();
  check_checkpoints();
  check_sync();
  check_full_disk();
  check_close();
  return 0;
}
