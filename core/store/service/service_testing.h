#pragma once
// Helpers for the native store tests: folders, and clients of a server in the same process.

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/testing.h"
#include "store/service/server.h"
#include "store/service/store.h"
#include "store/session/ring_channel.h"
#include "store/steps/gather.h"
#include "transport/shared_memory.h"

namespace tengen::store {

inline const Deadline kNever = Deadline::max();

// Returns a deadline that is long enough for every test.
inline Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

// An empty folder of this process, removed by the destructor.
struct Folder {
  explicit Folder(const std::string& name)
      : path(std::filesystem::temp_directory_path() /
             ("tengen-" + name + "-" + std::to_string(getpid()))) {
    clear();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  void clear() const {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }
  // Returns the number of files with this prefix.
  uint64_t count(const std::string& prefix) const {
    uint64_t num_files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      num_files += entry.path().filename().string().rfind(prefix, 0) == 0 ? 1u : 0u;
    }
    return num_files;
  }

  const std::filesystem::path path;
};

// While an object of this class exists, files of this process cannot grow beyond one page, as on a
// full disk. SIGXFSZ must be ignored.
class SmallFiles {
 public:
  SmallFiles() {
    TENGEN_CHECK(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit small{4096, before_.rlim_max};
    TENGEN_CHECK(setrlimit(RLIMIT_FSIZE, &small) == 0);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;
  ~SmallFiles() { setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

// A client's own mappings of the slab files of a store's first pool. Must outlive its SlabMaps.
class SlabFiles {
 public:
  SlabMap map(Store& store, const std::filesystem::path& directory) {
    const auto [slots_per_slab, chunk_bytes] = store.read([](const engine::Engine& engine) {
      const engine::Pool& pool = engine.pool(0);
      return std::pair(pool.slots().slots_per_slab(), pool.slots().slot_bytes());
    });
    return SlabMap(slots_per_slab, chunk_bytes, [this, directory](uint32_t index) {
      const std::scoped_lock lock(mutex_);
      files_.push_back(
          transport::SharedMemory::open((directory / engine::Slots::slab_name(0, index)).string()));
      return files_.back().data();
    });
  }

 private:
  std::mutex mutex_;
  std::deque<transport::SharedMemory> files_;
};

// Opens a writer's session with the server. The client's end is also in this process.
inline WriterSession connect_writer(Server& server, const std::string& name,
                                    uint32_t num_ahead = 2) {
  int ends[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Server::Opened opened = server.open_writer(ends[0], name, 0, kNever);
  const SessionAddress address{ends[1], opened.memory_path, opened.layout};
  return {std::make_unique<RingChannel>(address), opened.next_sequence, num_ahead};
}
// Creates a store with one table.
inline std::unique_ptr<Store> store_of(const std::string& directory, uint64_t memory_bytes,
                                       const engine::Schema& schema,
                                       engine::TableConfig config = {},
                                       const DiskConfig& disk = {}) {
  auto store = std::make_unique<Store>(directory, memory_bytes, 3, disk);
  if (config.name.empty()) config.name = "t";
  store->change([&](engine::Engine& engine) {
    engine.add_pool(schema);
    engine.add_table(config, 0);
  });
  return store;
}
// Appends a step with one column, and inserts the step as an item.
inline void write_item(Writer& writer, const void* step, uint32_t table = 0) {
  const auto* column = static_cast<const std::byte*>(step);
  const double one = 1.0;
  TENGEN_CHECK(writer.append({&column, 1}, 1, in_time()) == 1);
  const uint64_t first = writer.num_steps() - 1;
  TENGEN_CHECK(
      writer.insert({table, writer.next_sequence(), first, 1, 1, 1, {&one, 1}}, in_time()));
}
inline uint64_t table_size(Store& store, uint32_t table = 0) {
  return store.read([&](const engine::Engine& engine) { return engine.table(table).size(); });
}

inline SamplerSession connect_sampler(Server& server, uint32_t table, uint32_t num_samples,
                                      uint32_t num_ahead) {
  int ends[2];
  TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Server::Opened opened = server.open_sampler(ends[0], table, num_samples, num_ahead);
  const SessionAddress address{ends[1], opened.memory_path, opened.layout};
  return {std::make_unique<RingChannel>(address), num_ahead};
}
inline std::unique_ptr<Sampler> make_sampler(Store& store, SamplerSession session, SlabMap slabs,
                                             uint32_t table, uint32_t num_samples) {
  const auto [schema, num_steps] = store.read([&](const engine::Engine& engine) {
    return std::pair(engine.pool(engine.pool_of(table)).schema(),
                     engine.table(table).config().num_steps);
  });
  return std::make_unique<Sampler>(std::move(session), schema, std::move(slabs), num_samples,
                                   num_steps);
}
// Opens a sampler in the store's own process.
inline std::unique_ptr<Sampler> open_sampler(Store& store, uint32_t table, uint32_t num_samples,
                                             uint32_t num_ahead) {
  return make_sampler(store, store.open_sampler(table, num_samples, num_ahead), store.slab_map(0),
                      table, num_samples);
}
inline bool next(Sampler& sampler, Deadline deadline, Delivery* delivery) {
  std::optional<Delivery> drawn = sampler.next(deadline);
  if (drawn) *delivery = std::move(*drawn);
  return drawn.has_value();
}

}  // namespace tengen::store
