#pragma once
// A test store with clients over each carrier: function calls, shared-memory rings, streams.

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/clients/sampler.h"
#include "store/clients/writer.h"
#include "store/net/gateway.h"
#include "store/service/service_testing.h"
#include "store/session/stream_channel.h"

namespace tengen::store {

inline Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); }

// The test schema has several columns, so that a test notices a misplaced one, and small and large
// pieces, because they take different code paths.
constexpr uint32_t kLarge = 3000;
inline engine::Schema carried_schema() {
  return engine::Schema({{"x", "i8", {}, 0}, {"y", "u1", {kLarge}, 0}, {"z", "u1", {3}, 0}}, 4);
}
struct CarriedStep {
  int64_t x = 0;
  std::array<uint8_t, kLarge> y{};
  std::array<uint8_t, 3> z{};

  explicit CarriedStep(int64_t value = 0) : x(value) {
    y.fill(static_cast<uint8_t>(value * 7));
    z.fill(static_cast<uint8_t>(value * 3));
  }
};

inline engine::TableConfig queue_of(uint32_t num_steps, double max_ahead) {
  engine::TableConfig config;
  config.name = "t";
  config.sampler = engine::selector_of("fifo");
  config.limits = {1.0, 1, 0.0, max_ahead};
  config.max_times_sampled = 1;
  config.num_steps = num_steps;
  return config;
}

enum class Carrier { kCall, kRing, kStream };
constexpr Carrier kAllCarriers[] = {Carrier::kCall, Carrier::kRing, Carrier::kStream};
constexpr Carrier kRemoteCarriers[] = {Carrier::kRing, Carrier::kStream};

// A store with a server and a gateway, and its clients in this process.
struct CarriedStore {
  explicit CarriedStore(Carrier by, uint64_t memory_bytes = 1 << 20)
      : carrier(by), store(std::make_unique<Store>(folder.path.string(), memory_bytes, 3)) {
    store->change([](engine::Engine& engine) { engine.add_pool(carried_schema()); });
    server = std::make_unique<Server>(store.get());
    gateway = std::make_unique<Gateway>(store.get());
  }
  ~CarriedStore() {
    gateway.reset();
    server.reset();
    TENGEN_CHECK(folder.count("session-") == 0);
  }

  uint32_t add_table(const engine::TableConfig& config) {
    return store->change([&](engine::Engine& engine) { return engine.add_table(config, 0); });
  }

  Writer writer(const std::string& name, uint32_t max_item_steps = 1) {
    if (carrier == Carrier::kStream) {
      const auto [ours, theirs] = streams();
      const uint64_t next_sequence = gateway->open_writer(theirs.descriptor, name, 0, in_time());
      auto channel = std::make_unique<StreamChannel>(StreamAddress{ours, "test"});
      return Writer({std::move(channel), next_sequence}, carried_schema(), SlabMap::none(),
                    max_item_steps);
    }
    return Writer(
        carrier == Carrier::kRing ? connect_writer(*server, name) : store->open_writer(name, 0),
        carried_schema(), slab_map(), max_item_steps);
  }

  std::unique_ptr<Sampler> sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead) {
    const auto open = [&]() -> SamplerSession {
      if (carrier == Carrier::kCall) return store->open_sampler(table, num_samples, num_ahead);
      if (carrier == Carrier::kRing) return connect_sampler(*server, table, num_samples, num_ahead);
      const auto [ours, theirs] = streams();
      gateway->open_sampler(theirs.descriptor, table, num_samples, num_ahead);
      const uint64_t batch_bytes =
          BatchLayout(carried_schema(), num_samples, num_steps()).num_bytes;
      return {
          std::make_unique<StreamChannel>(StreamAddress{ours, "test"}, num_samples, batch_bytes),
          num_ahead};
    };
    return make_sampler(*store, open(), slab_map(), table, num_samples);
  }

  struct Held {
    explicit Held(int held) : descriptor(held) {}
    Held(Held&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
    ~Held() {
      if (descriptor >= 0) ::close(descriptor);
    }
    int descriptor;
  };
  // Returns a connected stream: the client's end, and the end that the gateway duplicates.
  static std::pair<int, Held> streams() {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return {ends[0], Held(ends[1])};
  }

  // Returns the number of steps per sample of the only table.
  uint32_t num_steps() const {
    return store->read(
        [](const engine::Engine& engine) { return engine.table(0).config().num_steps; });
  }

  SlabMap slab_map() { return files.map(*store, folder.path); }

  const Carrier carrier;
  const Folder folder{"service"};
  SlabFiles files;
  std::unique_ptr<Store> store;
  std::unique_ptr<Server> server;
  std::unique_ptr<Gateway> gateway;
};

// Returns whether a writer or a sampler reports within a moment that it waits for `reason`.
template <class Client>
bool comes_to_wait(Client& client, const std::string& reason) {
  const Deadline end = in_time();
  while (client.waits().find(reason) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline bool append(Writer& writer, int64_t value, Deadline deadline = kNever) {
  const CarriedStep step(value);
  const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&step.x),
                                reinterpret_cast<const std::byte*>(step.y.data()),
                                reinterpret_cast<const std::byte*>(step.z.data())};
  return writer.append(columns, 1, deadline) == 1;
}

inline const double kOne = 1.0;

// Inserts the writer's last `num_steps` steps as one item.
inline bool insert(Writer& writer, uint32_t table, uint32_t num_steps, Deadline deadline = kNever) {
  return writer.insert(
      {table, writer.next_sequence(), writer.num_steps() - num_steps, 1, 1, num_steps, {&kOne, 1}},
      deadline);
}

inline std::vector<int64_t> values_of(const CarriedStore& fixture, const Delivery& delivery) {
  const size_t num_steps = delivery.keys.size() * fixture.num_steps();
  std::vector<int64_t> x(num_steps);
  const BatchLayout layout(carried_schema(), static_cast<uint32_t>(delivery.keys.size()),
                           fixture.num_steps());
  std::memcpy(x.data(), delivery.data.get() + layout.offsets[0], num_steps * sizeof(int64_t));
  for (size_t i = 0; i < num_steps; ++i) {
    const CarriedStep step(x[i]);
    const std::byte* y = delivery.data.get() + layout.offsets[1] + i * step.y.size();
    const std::byte* z = delivery.data.get() + layout.offsets[2] + i * step.z.size();
    TENGEN_CHECK(std::memcmp(y, step.y.data(), step.y.size()) == 0);
    TENGEN_CHECK(std::memcmp(z, step.z.data(), step.z.size()) == 0);
  }
  return x;
}

// Returns the error of a call, or an empty string.
inline std::string word_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tengen::store
