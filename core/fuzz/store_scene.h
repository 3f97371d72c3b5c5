#pragma once
// What several clients of one store are held to: a model of the items, and steps that say whose
// they are.

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fuzz/target.h"
#include "store/clients/batch_layout.h"
#include "store/net/gateway.h"
#include "store/service/server.h"
#include "store/service/store.h"

namespace tengen::fuzz::scene {

using store::Deadline;
using store::engine::Engine;
using store::engine::Schema;

constexpr uint32_t kStepsPerChunk = 4;
// So many that a slab has one slot, and a slot that is free is the next writer's.
constexpr uint32_t kFillBytes = 2000;
constexpr size_t kMaxCommandBytes = 640;
constexpr uint64_t kMemoryBytes[] = {uint64_t{1} << 20, uint64_t{1} << 18};
constexpr uint32_t kNumSamples = 3;
constexpr uint32_t kMaxUses = 2;  // of an item of the second table
constexpr uint32_t kNumTables = 2;
constexpr uint32_t kNumSteps[kNumTables] = {1, 2};  // of a sample

// Long enough for whatever is to come, so that only a hang takes it.
inline Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

inline Schema schema() {
  return Schema({{"who", "u8", {2}, 0}, {"fill", "u1", {kFillBytes}, 0}}, kStepsPerChunk);
}

// What a step shows: its writer and its number there, and bytes that follow from both.
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

// The reference: how often each item was inserted, is on loan, and was used.
class Model {
 public:
  struct Item {
    uint32_t table;
    uint64_t writer, first;
    auto operator<=>(const Item&) const = default;
  };

  void insert(const Item& item) { ++items_[item].num_inserted; }
  void lend(const Item& item) {
    Counts& counts = items_[item];
    expect(counts.num_inserted > 0, "only items that were inserted are drawn");
    ++counts.num_lent;
    const uint64_t most = counts.num_inserted * kMaxUses;
    expect(item.table == 0 || counts.num_lent + counts.num_used <= most,
           "no item is used more often than it may be");
  }
  void end_loan(const Item& item, bool is_used) {
    --items_[item].num_lent;
    items_[item].num_used += is_used ? 1u : 0u;
  }
  void check_all_used() const {
    for (const auto& [item, counts] : items_) {
      expect(item.table == 0 || counts.num_used == counts.num_inserted * kMaxUses,
             "every item is used as often as it may be");
    }
  }

 private:
  struct Counts {
    uint64_t num_inserted = 0, num_lent = 0, num_used = 0;
  };
  std::map<Item, Counts> items_;
};

using Items = std::vector<Model::Item>;

// The items of a gathered batch, each byte of which must be its writer's.
inline Items read_batch(uint32_t table, const std::byte* data, uint32_t num_samples = kNumSamples) {
  const store::BatchLayout layout(schema(), num_samples, kNumSteps[table]);
  Items items;
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
    items.push_back({table, first.who[0], first.who[1]});
  }
  return items;
}

// A store with its two doors.
struct World {
  World(const std::string& folder, uint64_t memory_bytes, bool goes_on)
      : store(folder, memory_bytes, 3) {
    store.change([&](Engine& engine) {
      engine.add_pool(schema());
      for (uint32_t i = 0; i < kNumTables; ++i) {
        store::engine::TableConfig config;
        config.name = i == 0 ? "any" : "twice";
        config.sampler = store::engine::selector_of(i == 0 ? "prioritized" : "uniform");
        config.max_items = i == 0 ? 50 : 100'000;
        config.max_times_sampled = i == 0 ? 0 : kMaxUses;
        config.num_steps = kNumSteps[i];
        engine.add_table(config, 0);
      }
    });
    const store::Resumed resumed = store.keep(goes_on);
    server.emplace(&store, resumed.sessions);
    gateway.emplace(&store);
  }
  // Blocks until the store knows that every client has gone.
  void wait_until_alone() {
    const Deadline end = in_time();
    while (!server->describe().empty() || !gateway->describe().empty()) {
      expect(std::chrono::steady_clock::now() < end, "sessions end in time");
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  bool can_draw(uint32_t table, uint32_t num_samples = kNumSamples) {
    return store.read([&](const Engine& engine) {
      return engine.table(table).samples_allowed(num_samples) == num_samples;
    });
  }

  store::Store store;
  std::optional<store::Server> server;
  std::optional<store::Gateway> gateway;
};

// Both ends of a connection; whoever takes one over closes it.
inline std::array<int, 2> ends_of_connection() {
  int ends[2];
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  return {ends[0], ends[1]};
}

// The commands of one input, byte by byte.
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
  // Ends the session; act() begins another.
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
