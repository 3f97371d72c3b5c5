#pragma once
// The parts of the fuzz target store_model: a model of the items, and steps whose bytes show which
// writer wrote them.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fuzz/target.h"
#include "store/net/gateway.h"
#include "store/service/server.h"
#include "store/service/store.h"
#include "store/state/saved.h"
#include "store/steps/gather.h"

namespace tengen::fuzz::scene {

using store::Deadline;
using store::engine::Engine;
using store::engine::SavedTable;
using store::engine::Schema;

constexpr uint32_t kStepsPerChunk = 4;
// So large that a slab has one slot, and a freed slot is reused by the next writer.
constexpr uint32_t kFillBytes = 2000;
constexpr size_t kMaxCommandBytes = 640;
constexpr uint64_t kMemoryBytes[] = {uint64_t{1} << 20, uint64_t{1} << 18};
constexpr uint32_t kNumSamples = 3;
// Three tables: the last kMaxAny items, items that are used kMaxUses times, and a table that
// samples its oldest item.
enum : uint32_t { kAny, kTwice, kOldest, kNumTables };
constexpr const char* kNames[kNumTables] = {"any", "twice", "oldest"};
constexpr const char* kSamplers[kNumTables] = {"prioritized", "uniform", "fifo"};
constexpr uint32_t kNumSteps[kNumTables] = {1, 2, 1};  // per sample
constexpr uint32_t kMaxAny = 50;
constexpr uint32_t kMaxUses = 2;

// A deadline so late that only a hang reaches it.
inline Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

inline Schema schema() {
  return Schema({{"who", "u8", {2}, 0}, {"fill", "u1", {kFillBytes}, 0}}, kStepsPerChunk);
}

// The contents of a step: its writer, its number in that writer, and bytes computed from both.
struct Step {
  std::array<uint64_t, 2> who;
  std::array<uint8_t, kFillBytes> fill;

  static Step of(uint64_t writer, uint64_t number) {
    Step step{{writer, number}, {}};
    for (uint32_t i = 0; i < kFillBytes; ++i) {
      step.fill[i] = static_cast<uint8_t>(31 * writer + 7 * number + i);
    }
    return step;
  }
  bool operator==(const Step&) const = default;
};

// The reference: the items of each table in the order of insertion, with the uses of each item.
class Model {
 public:
  struct Item {
    uint64_t writer, first;
    uint32_t num_steps;
    uint64_t num_lent = 0, num_used = 0;
  };
  // A sample as a batch returns it.
  struct Drawn {
    uint32_t table;
    int64_t key;
    uint64_t writer, first;
  };

  void insert(uint32_t table, const Item& item) { items_[table].push_back(item); }
  uint64_t num_items(uint32_t table) const { return items_[table].size(); }

  // `is_whole`: no item has been removed to free memory.
  void lend(const Drawn& drawn, bool is_whole) {
    Item& item = item_of(drawn.table, drawn.key);
    expect(item.writer == drawn.writer && item.first <= drawn.first &&
               drawn.first + kNumSteps[drawn.table] <= item.first + item.num_steps,
           "a sample is a slice of the item that its key names");
    ++item.num_lent;
    if (drawn.table == kTwice) {
      expect(item.num_lent + item.num_used <= kMaxUses,
             "no item is used more often than it may be");
    }
    expect(drawn.table != kOldest || !is_whole || &item == items_[kOldest].data(),
           "the oldest item comes");
  }
  void end_loan(const Drawn& drawn, bool is_used) {
    Item& item = item_of(drawn.table, drawn.key);
    --item.num_lent;
    if (is_used) ++item.num_used;
  }

  // Compares a table in the store's files with the model.
  void check_saved(uint32_t table, const SavedTable& saved, bool is_whole) {
    std::vector<bool> is_there(items_[table].size());
    for (const store::engine::SavedItem& one : saved.items) {
      if (one.key < 0) continue;
      const Item& item = item_of(table, one.key);
      expect(one.steps.first == item.first && one.steps.num_steps == item.num_steps,
             "an item keeps its steps");
      expect(one.times_sampled == item.num_used, "each use of an item counts once");
      is_there[static_cast<size_t>(store::engine::serial_of(one.key))] = true;
    }
    for (size_t i = 0; is_whole && i < is_there.size(); ++i) {
      const bool must_be_there = table == kAny     ? i + kMaxAny >= is_there.size()
                                 : table == kTwice ? items_[table][i].num_used < kMaxUses
                                                   : true;
      expect(is_there[i] == must_be_there, "items leave when they must, and not before");
    }
  }
  void check_all_used() const {
    for (const Item& item : items_[kTwice]) {
      expect(item.num_used == kMaxUses, "every item is used as often as it may be");
    }
  }

 private:
  Item& item_of(uint32_t table, int64_t key) {
    const auto serial = static_cast<uint64_t>(store::engine::serial_of(key));
    expect(serial < items_[table].size(), "only items that were inserted are drawn");
    return items_[table][serial];
  }

  std::array<std::vector<Item>, kNumTables> items_;
};

using Samples = std::vector<Model::Drawn>;

// Returns the samples of a gathered batch. Checks that every byte is what its writer wrote.
inline Samples read_batch(uint32_t table, std::span<const int64_t> keys, const std::byte* data) {
  const auto num_samples = static_cast<uint32_t>(keys.size());
  const store::BatchLayout layout(schema(), num_samples, kNumSteps[table]);
  Samples samples;
  for (uint32_t i = 0; i < num_samples; ++i) {
    Step first{};
    for (uint32_t j = 0; j < kNumSteps[table]; ++j) {
      const uint32_t row = i * kNumSteps[table] + j;
      Step step;
      std::memcpy(&step.who, data + layout.offsets[0] + row * sizeof step.who, sizeof step.who);
      std::memcpy(&step.fill, data + layout.offsets[1] + row * kFillBytes, kFillBytes);
      if (j == 0) first = step;
      expect(step == Step::of(first.who[0], first.who[1] + j), "each byte is its writer's");
    }
    samples.push_back({table, keys[i], first.who[0], first.who[1]});
  }
  return samples;
}

// A store with its two servers: for clients on this host and for clients on other hosts.
struct World {
  World(const std::string& folder, uint64_t memory_bytes, bool goes_on)
      : store(folder, memory_bytes, 3) {
    store.change([&](Engine& engine) {
      engine.add_pool(schema());
      for (uint32_t i = 0; i < kNumTables; ++i) {
        store::engine::TableConfig config;
        config.name = kNames[i];
        config.sampler = store::engine::selector_of(kSamplers[i]);
        config.max_items = i == kAny ? kMaxAny : 100'000;
        config.max_times_sampled = i == kTwice ? kMaxUses : 0;
        config.num_steps = kNumSteps[i];
        engine.add_table(config, 0);
      }
    });
    const store::Resumed resumed = store.keep(goes_on);
    server.emplace(&store, resumed.sessions);
    gateway.emplace(&store);
  }
  template <class F>
  auto of_table(uint32_t table, F&& f) {
    return store.read([&](const Engine& engine) { return f(engine.table(table)); });
  }
  // Blocks until the store has noticed that every client has disconnected.
  void wait_until_alone() {
    wait("sessions end in time",
         [&] { return server->describe().empty() && gateway->describe().empty(); });
  }
  // Blocks until a session of the gateway has ended and its batches have been returned.
  void wait_until_gone(const std::string& name) {
    wait("a session ends in time", [&] {
      const std::vector<std::string> lines = gateway->describe();
      return std::none_of(lines.begin(), lines.end(),
                          [&](const std::string& line) { return line.starts_with(name); });
    });
  }
  bool can_draw(uint32_t table, uint64_t num_samples) {
    return of_table(
        table, [&](const auto& one) { return one.samples_allowed(num_samples) == num_samples; });
  }
  uint64_t num_inserts(uint32_t table) {
    return of_table(table, [](const auto& one) { return one.limiter().num_inserts(); });
  }
  // Returns whether no item has been removed to free memory.
  bool is_whole() {
    return store.read([](const Engine& engine) { return engine.num_removed() == 0; });
  }
  template <class Holds>
  static void wait(const char* what, Holds&& holds) {
    for (const Deadline end = in_time(); !holds();) {
      expect(std::chrono::steady_clock::now() < end, what);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  store::Store store;
  std::optional<store::Server> server;
  std::optional<store::Gateway> gateway;
};

// Returns both ends of a connection, which the caller owns.
inline std::array<int, 2> ends_of_connection() {
  int ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  return {ends[0], ends[1]};
}

// The commands of one input, read byte by byte.
struct Commands {
  std::string_view bytes;
  uint32_t next() { return take_byte(&bytes); }
  bool is_at_end() const { return bytes.empty(); }
};

class Client;
struct Scene {
  World* world;
  Model model;
  uint64_t num_writers = 0;
  uint64_t num_messages = 0;
  std::vector<std::unique_ptr<Client>> clients;
  void end_others(const Client* but);
};

class Client {
 public:
  explicit Client(Scene* scene) : scene_(*scene) {}
  virtual ~Client() = default;
  virtual void act(Commands& commands) = 0;
  // Ends the session; the next act() begins a new one.
  virtual void end() = 0;

 protected:
  World& world() { return *scene_.world; }
  Scene& scene_;
};

inline void Scene::end_others(const Client* but) {
  for (const auto& client : clients) {
    if (client.get() != but) client->end();
  }
}

}  // namespace tengen::fuzz::scene
