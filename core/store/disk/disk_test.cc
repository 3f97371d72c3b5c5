// A store with a disk, used by several threads, with real files.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/shortage_testing.h"
#include "base/thread.h"
#include "store/clients/writer.h"
#include "store/disk/disk_testing.h"
#include "store/disk/disk_tier.h"
#include "store/service/service_testing.h"

using namespace tengen;
using namespace tengen::store;
using engine::Engine;
using engine::Schema;

namespace {

constexpr uint64_t kPage = engine::Disk::kAlignment;
constexpr uint64_t kDiskBytes = 1 << 24;

Schema schema() { return Schema({{"x", "u8", {400}, 0}}, 1); }

// A store with few slots in a folder, either with a server or used within this process only.
struct Fixture {
  explicit Fixture(bool with_server, uint64_t num_slots, uint64_t disk_bytes = kDiskBytes)
      : has_server(with_server) {
    std::filesystem::create_directory(folder.path / "disk");
    store = std::make_unique<Store>(has_server ? folder.path.string() : "", num_slots * kPage, 3,
                                    DiskConfig{folder.path / "disk", disk_bytes});
    store->change([](Engine& engine) { engine.add_pool(schema()); });
    if (has_server) server = std::make_unique<Server>(store.get());
  }
  void add_table(const std::string& name, const char* sampler, uint32_t max_times = 0) {
    engine::TableConfig config;
    config.name = name;
    config.sampler = engine::selector_of(sampler);
    config.max_times_sampled = max_times;
    if (max_times > 0) config.limits = {1.0, 1, 0.0, 1e9};
    store->change([&](Engine& engine) { engine.add_table(config, 0); });
  }
  SlabMap slab_map() { return has_server ? files.map(*store, folder.path) : store->slab_map(0); }
  Writer writer(const std::string& name) {
    return Writer(has_server ? connect_writer(*server, name) : store->open_writer(name, 0),
                  schema(), slab_map(), 1);
  }
  std::unique_ptr<Sampler> sampler(uint32_t num_samples, uint32_t num_ahead) {
    return make_sampler(*store,
                        has_server ? connect_sampler(*server, 0, num_samples, num_ahead)
                                   : store->open_sampler(0, num_samples, num_ahead),
                        slab_map(), 0, num_samples);
  }
  void write(Writer& by, uint64_t first, uint64_t count) {
    for (uint64_t number = first; number < first + count; ++number) {
      const std::vector<uint64_t> step(400, number);
      write_item(by, step.data());
    }
    TENGEN_CHECK(by.flush(kNever));
  }
  static std::vector<uint64_t> values_of(const Delivery& delivery) {
    std::vector<uint64_t> values;
    for (size_t i = 0; i < delivery.keys.size(); ++i) {
      uint64_t words[400];
      std::memcpy(words, delivery.data.get() + i * sizeof words, sizeof words);
      for (const uint64_t word : words) TENGEN_CHECK(word == words[0]);
      values.push_back(words[0]);
    }
    return values;
  }

  const bool has_server;
  const Folder folder{"disk"};
  SlabFiles files;
  std::unique_ptr<Store> store;
  std::unique_ptr<Server> server;
};

// With concurrent writers and samplers, every item is used exactly once with its own steps, and
// each sampler receives its leases in ascending order.
void check_many(bool with_server) {
  Fixture fixture(with_server, 24);
  fixture.add_table("t", "fifo", 1);
  constexpr uint64_t kItems = 300;
  constexpr uint64_t kClients = 2;
  std::mutex mutex;
  std::map<uint64_t, int> uses;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<Sampler>> samplers;
  for (uint64_t c = 0; c < kClients; ++c) {
    writers.emplace_back(new Writer(fixture.writer("w" + std::to_string(c))));
    samplers.push_back(fixture.sampler(3, 2));
  }
  for (uint64_t c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] { fixture.write(*writers[c], c * kItems, kItems); });
    threads.emplace_back([&, c] {
      Delivery delivery;
      uint64_t last_lease = 0;
      for (uint64_t i = 0; i < kItems / 3; ++i) {
        TENGEN_CHECK(next(*samplers[c], kNever, &delivery));
        TENGEN_CHECK(i == 0 || delivery.lease > last_lease);
        last_lease = delivery.lease;
        const std::vector<uint64_t> values = fixture.values_of(delivery);
        {
          const std::scoped_lock lock(mutex);
          for (const uint64_t value : values) ++uses[value];
        }
        samplers[c]->ack(delivery.lease, {});
      }
      samplers[c].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  TENGEN_CHECK(uses.size() == kClients * kItems);
  for (const auto& [value, count] : uses) TENGEN_CHECK(count == 1);
}

// A store can be closed while transfers are in progress.
void check_end(bool with_server) {
  for (int round = 0; round < 10; ++round) {
    Fixture fixture(with_server, 16);
    fixture.add_table("t", "uniform");
    Writer writer = fixture.writer("w");
    fixture.write(writer, 0, 60);
    const auto sampler = fixture.sampler(4, 2);
    Delivery delivery;
    if (round % 2 == 0) TENGEN_CHECK(next(*sampler, kNever, &delivery));
    (void)next(*sampler, kAtOnce, &delivery);
    fixture.store->close();
    if (!with_server) continue;
    fixture.server.reset();
  }
}

// A damaged row removes only the items whose steps it holds.
void check_damage() {
  Fixture fixture(/*with_server=*/true, 16);  // without a server the files are unnamed
  fixture.add_table("t", "fifo");
  Writer writer = fixture.writer("w");
  fixture.write(writer, 0, 100);
  const int file = open((fixture.folder.path / "disk" / "rows-0").c_str(), O_WRONLY);
  for (int row = 0; row < 3; ++row) TENGEN_CHECK(pwrite(file, "bad", 3, row * 4096 + 8) == 3);
  close(file);
  Delivery delivery;
  auto sampler = fixture.sampler(1, 0);
  TENGEN_CHECK(next(*sampler, kNever, &delivery));
  TENGEN_CHECK(fixture.values_of(delivery) == std::vector<uint64_t>{3});
  fixture.store->read([](const Engine& engine) {
    TENGEN_CHECK(engine.num_damaged(0) == 3 && engine.table(0).size() == 97);
  });
  TENGEN_CHECK(fixture.store->trouble().find("rows-0 differs from what was written") !=
               std::string::npos);
}

template <class Holds>
void wait_until(Holds&& holds) {
  const Deadline end = in_time();
  while (!holds()) {
    TENGEN_CHECK(std::chrono::steady_clock::now() < end);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// A failed write of a row removes no item; only the row's space on the disk is lost.
void check_bad_row() {
  std::atomic<int> num_rows = 0;
  const WatchedDisk disk([&](const std::string& path) {
    if (path.find("rows-0") != std::string::npos && ++num_rows == 10) throw Error("row is bad");
  });
  Fixture fixture(/*with_server=*/true, 24);
  fixture.add_table("t", "uniform");
  Writer writer = fixture.writer("w");
  fixture.write(writer, 0, 300);
  fixture.store->read([](const Engine& engine) { TENGEN_CHECK(engine.table(0).size() == 300); });
  // The file also stays within the disk's budget.
  TENGEN_CHECK(std::filesystem::file_size(fixture.folder.path / "disk" / "rows-0") <= kDiskBytes);
}

// After a complete failure, a small disk is used again when it works, except for the rows whose
// writes failed first.
void check_dead_disk() {
  constexpr uint64_t kRows = 40;
  std::atomic<bool> is_dead = true;
  const WatchedDisk disk([&](const std::string& path) {
    if (is_dead && path.find("rows-0") != std::string::npos) throw Error("disk is dead");
  });
  Fixture fixture(/*with_server=*/false, 24, kRows * kPage);
  fixture.add_table("t", "uniform");
  Writer writer = fixture.writer("w");
  uint64_t next = 0;
  const auto write = [&](uint64_t count) {
    fixture.write(writer, next, count);
    next += count;
    return fixture.store->read([](const Engine& engine) { return engine.table(0).size(); });
  };
  for (int i = 0; i < 10; ++i) TENGEN_CHECK(write(100) <= 24);
  is_dead = false;
  wait_until([&] { return write(1) >= 36; });
}

// Transfers whose memory was reserved are submitted and started without allocating, because errors
// could no longer be reported at that point.
void check_reserved_transfers() {
  const Folder folder("disk");
  std::atomic<int> num_done = 0;
  DiskTier tier(
      folder.path, true,
      [&](const engine::Transfer&, bool, const engine::TransferResult& result) {
        TENGEN_CHECK(result.error.empty());
        ++num_done;
      },
      [] {});
  const auto row = std::make_unique<std::byte[]>(2 * kPage);
  std::byte* const page = row.get() + (kPage - reinterpret_cast<uintptr_t>(row.get()) % kPage);
  tier.reserve(3);
  num_news_left = 0;
  for (uint32_t i = 0; i < 3; ++i) tier.save({0, i, i, 0, page, kPage});
  tier.start();
  num_news_left = -1;
  wait_until([&] { return num_done == 3; });
}

// While the process has no descriptors left, transfers that need one wait, and one warning is
// printed. Other transfers continue, and no transfer is lost.
void check_want_of_descriptors() {
  const Folder folder("descriptors");
  constexpr uint64_t kNumLoads = 100;  // more loads than threads
  // The first row is for saves; each load has its own row.
  alignas(kPage) static std::byte rows[1 + kNumLoads][kPage];
  std::memset(rows, 7, sizeof rows);
  std::atomic<uint64_t> num_loaded = 0, num_saved = 0, num_short = 0, num_rooms = 0;
  std::atomic<uint32_t> checksum = 0;
  const auto done = [&](const engine::Transfer&, bool is_load,
                        const engine::TransferResult& result) {
    if (result.is_shortage) {
      ++num_short;
    } else {
      TENGEN_CHECK(result.error.empty());
      if (!is_load) checksum = result.checksum;
      ++(is_load ? num_loaded : num_saved);
    }
  };
  const auto of_pool = [&](uint32_t pool, std::byte* row) {
    return engine::Transfer{pool, 0, 0, checksum, row, kPage};
  };
  const auto save = [&](DiskTier& tier, uint32_t pool) {
    tier.save(of_pool(pool, rows[0]));
    tier.start();
  };
  {
    DiskTier before(folder.path, false, done, [] {});
    save(before, 0);
    wait_until([&] { return num_saved == 1; });
  }
  // The sanitizer opens descriptors the first time it sees a type, so show it this type now.
  (void)message_of(std::make_exception_ptr(ShortageError("")));
  const int err = dup(2);
  const int file = open((folder.path / "told").c_str(), O_RDWR | O_CREAT, 0600);
  TENGEN_CHECK(dup2(file, 2) == 2);
  DiskTier* of_room = nullptr;
  DiskTier tier(folder.path, false, done, [&] {
    ++num_rooms;
    save(*of_room, 2);  // as the store does
  });
  of_room = &tier;
  save(tier, 1);
  wait_until([&] { return num_saved == 2; });
  {
    const NoDescriptors none;
    for (uint64_t i = 0; i < kNumLoads; ++i) tier.load(of_pool(0, rows[1 + i]));
    tier.start();
    wait_until([&] { return tier.trouble().find("raise ulimit -n") != std::string::npos; });
    save(tier, 1);
    wait_until([&] { return num_saved == 3; });
    save(tier, 2);
    wait_until([&] { return num_short == 1; });
    TENGEN_CHECK(tier.sync().empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(700));  // several retry intervals
    TENGEN_CHECK(num_rooms == 0 && num_loaded == 0);
  }
  wait_until([&] { return num_loaded == kNumLoads && num_saved == 4; });
  TENGEN_CHECK(tier.trouble().empty());
  dup2(err, 2);
  char told[4096];
  const ssize_t num_bytes = pread(file, told, sizeof told, 0);
  // One warning for the loads and one for the saves.
  TENGEN_CHECK(num_bytes > 0 && std::count(told, told + num_bytes, '\n') == 2);
  close(file);
  close(err);
}

}  // namespace

int main() {
  check_reserved_transfers();
  check_bad_row();
  check_dead_disk();
  check_want_of_descriptors();
  check_damage();
  for (const bool with_server : {false, true}) {
    check_many(with_server);
    check_end(with_server);
  }
  return 0;
}
