// What holds for every session, whatever carries it.

#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/clients/batch_layout.h"
#include "store/clients/writer.h"
#include "store/net/gateway.h"
#include "store/service/service_testing.h"
#include "store/session/stream_channel.h"

using namespace tengen;
using namespace tengen::store::engine;
using namespace tengen::store;

namespace {

Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::milliseconds(20); }

// Two columns, so that one that is misplaced shows.
Schema schema_of(uint32_t steps_per_chunk) {
  return Schema({{"x", "i8", {}, 0}, {"y", "u1", {24}, 0}}, steps_per_chunk);
}

struct Step {
  int64_t x = 0;
  std::array<uint8_t, 24> y{};
  explicit Step(int64_t value = 0) : x(value) { y.fill(static_cast<uint8_t>(value * 7)); }
};

TableConfig queue_of(const std::string& name, uint32_t num_steps, double max_ahead) {
  TableConfig config;
  config.name = name;
  config.sampler = selector_of("fifo");
  config.limits = {1.0, 1, 0.0, max_ahead};
  config.max_times_sampled = 1;
  config.num_steps = num_steps;
  return config;
}

enum class Carrier { kCall, kRing, kStream };
constexpr Carrier kAll[] = {Carrier::kCall, Carrier::kRing, Carrier::kStream};
constexpr Carrier kRemote[] = {Carrier::kRing, Carrier::kStream};

// A store with a server and a gateway, and clients of it in this process.
struct Fixture {
  explicit Fixture(Carrier by, uint64_t memory_bytes = 1 << 20)
      : carrier(by), store(std::make_unique<Store>(folder.path.string(), memory_bytes, 3)) {
    store->change([](Engine& engine) { engine.add_pool(schema_of(4)); });
    server = std::make_unique<Server>(store.get());
    gateway = std::make_unique<Gateway>(store.get());
  }
  ~Fixture() {
    gateway.reset();
    server.reset();
    TENGEN_CHECK(num_session_files() == 0);
  }

  uint32_t add_table(const TableConfig& config) {
    return store->change([&](Engine& engine) { return engine.add_table(config, 0); });
  }

  Writer writer(const std::string& name, uint32_t max_item_steps = 1) {
    if (carrier == Carrier::kStream) {
      const auto [ours, theirs] = streams();
      const uint64_t next_sequence = gateway->open_writer(theirs.descriptor, name, 0, in_time());
      auto channel = std::make_unique<StreamChannel>(StreamAddress{ours, "test"});
      return Writer({std::move(channel), next_sequence}, schema_of(4), max_item_steps);
    }
    return Writer(
        carrier == Carrier::kRing ? connect_writer(*server, name) : store->open_writer(name, 0),
        schema_of(4), slab_map(), max_item_steps);
  }

  std::unique_ptr<SamplerPort> sampler(uint32_t table, uint32_t num_samples, uint32_t num_ahead) {
    if (carrier == Carrier::kCall) return store->open_sampler(table, num_samples, num_ahead);
    if (carrier == Carrier::kRing) return connect_sampler(*server, table, num_samples, num_ahead);
    const auto [ours, theirs] = streams();
    gateway->open_sampler(theirs.descriptor, table, num_samples, num_ahead);
    const uint64_t batch_bytes = BatchLayout(schema_of(4), num_samples, num_steps()).num_bytes;
    return std::make_unique<SamplerPort>(
        std::make_unique<StreamChannel>(StreamAddress{ours, "test"}, num_samples, batch_bytes),
        num_ahead);
  }

  // Of a sample of the only table.
  uint32_t num_steps() const {
    return store->read([](const Engine& engine) { return engine.table(0).config().num_steps; });
  }

  SlabMap slab_map() { return files.map(*store, folder.path); }

  size_t num_session_files() const { return folder.count("session-"); }

  const Carrier carrier;
  const Folder folder{"service"};
  SlabFiles files;
  std::unique_ptr<Store> store;
  std::unique_ptr<Server> server;
  std::unique_ptr<Gateway> gateway;

 private:
  struct Held {
    explicit Held(int held) : descriptor(held) {}
    Held(Held&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
    ~Held() {
      if (descriptor >= 0) ::close(descriptor);
    }
    int descriptor;
  };
  // A connected stream: the client's end, and the gateway's, which copies it.
  static std::pair<int, Held> streams() {
    int ends[2];
    TENGEN_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    return {ends[0], Held(ends[1])};
  }
};

// Whether a writer or a sampler is told soon that it waits for that.
template <class Client>
bool comes_to_wait(Client& client, const std::string& reason) {
  const Deadline end = in_time();
  while (client.waits().find(reason) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

void append(Writer& writer, int64_t value) {
  const Step step(value);
  const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&step.x),
                                reinterpret_cast<const std::byte*>(step.y.data())};
  TENGEN_CHECK(writer.append(columns, 1, kNever) == 1);
}

const double kOne = 1.0;

// The last `num_steps` steps as one item.
bool insert(Writer& writer, uint32_t table, uint32_t num_steps, Deadline deadline = kNever) {
  return writer.insert(
      {table, writer.next_sequence(), writer.num_steps() - num_steps, 1, 1, num_steps, {&kOne, 1}},
      deadline);
}

std::vector<int64_t> values_of(Fixture& fixture, const Delivery& delivery) {
  const size_t num_steps = delivery.keys.size() * fixture.num_steps();
  std::vector<int64_t> x(num_steps);
  std::vector<uint8_t> y(num_steps * 24);
  if (delivery.data) {
    const BatchLayout layout(schema_of(4), static_cast<uint32_t>(delivery.keys.size()),
                             fixture.num_steps());
    std::memcpy(x.data(), delivery.data.get() + layout.offsets[0], num_steps * sizeof(int64_t));
    std::memcpy(y.data(), delivery.data.get() + layout.offsets[1], y.size());
  } else {
    std::byte* out[] = {reinterpret_cast<std::byte*>(x.data()),
                        reinterpret_cast<std::byte*>(y.data())};
    SlabMap slabs = fixture.slab_map();
    gather(schema_of(4), slabs.of(delivery.pieces), delivery.pieces, out);
  }
  for (size_t i = 0; i < num_steps; ++i) {
    TENGEN_CHECK(std::memcmp(&y[i * 24], Step(x[i]).y.data(), 24) == 0);
  }
  return x;
}

// Overlapping items of several steps come out whole and in order.
void check_items(Carrier carrier) {
  Fixture fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of("t", 3, 1e9));
  Writer writer = fixture.writer("a", 3);
  for (int64_t i = 0; i < 40; ++i) {
    append(writer, i);
    if (i >= 2) TENGEN_CHECK(insert(writer, table, 3));
  }
  TENGEN_CHECK(writer.flush(kNever) && writer.next_sequence() == 38);
  auto sampler = fixture.sampler(table, 2, 3);
  Delivery delivery;
  for (int64_t i = 0; i < 38; i += 2) {
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    const std::vector<int64_t> expected = {i, i + 1, i + 2, i + 1, i + 2, i + 3};
    TENGEN_CHECK(values_of(fixture, delivery) == expected);
    sampler->ack(delivery.lease, {});
  }
  TENGEN_CHECK(!sampler->next(soon(), &delivery));
  TENGEN_CHECK(comes_to_wait(*sampler, "items must be inserted"));
}

// A run of many items is inserted as far as the limiter lets it, and goes on later; a call whose
// deadline passed is made again and doubles nothing.
void check_limits(Carrier carrier) {
  Fixture fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 5));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 12; ++i) append(writer, i);
  const InsertRun run{table, 0, 0, 12, 1, 1, {&kOne, 1}};
  bool done = writer.insert(run, soon()) && writer.flush(soon());
  TENGEN_CHECK(!done);
  const std::string reason = "insert waits: 1 samples must be drawn first";
  TENGEN_CHECK(comes_to_wait(writer, reason));
  if (carrier == Carrier::kRing)
    TENGEN_CHECK(fixture.server->describe()[0] == "writer a: " + reason);
  if (carrier == Carrier::kStream) {
    TENGEN_CHECK(fixture.gateway->describe()[0] == "writer a: " + reason);
  }
  std::vector<int64_t> values;
  {
    auto sampler = fixture.sampler(table, 2, 1);
    Delivery delivery;
    for (int i = 0; i < 4; ++i) {
      TENGEN_CHECK(sampler->next(kNever, &delivery));
      const std::vector<int64_t> two = values_of(fixture, delivery);
      values.insert(values.end(), two.begin(), two.end());
      sampler->ack(delivery.lease, {});
      if (carrier == Carrier::kCall) writer.insert(run, soon());
    }
    TENGEN_CHECK(writer.insert(run, kNever) && writer.flush(kNever));
    for (int i = 0; i < 2; ++i) {
      TENGEN_CHECK(sampler->next(kNever, &delivery));
      const std::vector<int64_t> two = values_of(fixture, delivery);
      values.insert(values.end(), two.begin(), two.end());
      sampler->ack(delivery.lease, {});
    }
    TENGEN_CHECK(!sampler->next(soon(), &delivery));
  }
  TENGEN_CHECK((values == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

// What a sampler drew ahead and never used comes back, whether it was taken or not.
void check_death(Carrier carrier) {
  Fixture fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  {
    Writer writer = fixture.writer("a");
    for (int64_t i = 0; i < 10; ++i) {
      append(writer, i);
      TENGEN_CHECK(insert(writer, table, 1));
    }
    TENGEN_CHECK(writer.flush(kNever));
  }
  Delivery delivery;
  {
    auto sampler = fixture.sampler(table, 3, 2);
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    sampler->ack(delivery.lease, {});
    TENGEN_CHECK(sampler->next(kNever, &delivery));  // 3, 4, 5: never acknowledged
  }
  auto sampler = fixture.sampler(table, 7, 1);
  TENGEN_CHECK(sampler->next(kNever, &delivery));
  const std::vector<int64_t> values = values_of(fixture, delivery);
  TENGEN_CHECK(
      (std::set<int64_t>(values.begin(), values.end()) == std::set<int64_t>{3, 4, 5, 6, 7, 8, 9}));
  // The next client of the writer's name goes on.
  Writer writer = fixture.writer("a");
  TENGEN_CHECK(writer.next_sequence() == 10);
}

// Acknowledgements are heard behind a batch that cannot be drawn: here the one that waits needs
// the use that is acknowledged behind it.
void check_order(Carrier carrier) {
  Fixture fixture(carrier);
  TableConfig config = queue_of("t", 1, 1e9);
  config.max_times_sampled = 2;
  config.limits = {1e9, 1, -1e18, 1e18};
  const uint32_t table = fixture.add_table(config);
  Writer writer = fixture.writer("a");
  append(writer, 1);
  TENGEN_CHECK(insert(writer, table, 1) && writer.flush(kNever));
  auto sampler = fixture.sampler(table, 1, 4);
  Delivery delivery;
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    sampler->give_back(delivery.lease);
  }
  // Two given back may be drawn again, though more were asked for ahead of them.
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    sampler->ack(delivery.lease, {});
  }
  TENGEN_CHECK(!sampler->next(soon(), &delivery));
}

// A batch that was drawn ahead can be seen before it is taken, and is the one that is; an
// acknowledgement asks for one more. Without drawing ahead there is none.
void check_peek() {
  Fixture fixture(Carrier::kRing);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  Writer writer = fixture.writer("a");
  for (int64_t i = 0; i < 12; ++i) {
    append(writer, i);
    TENGEN_CHECK(insert(writer, table, 1));
  }
  TENGEN_CHECK(writer.flush(kNever));
  const auto num_drawn = [&](uint64_t wished) {
    uint64_t drawn = 0;
    for (int i = 0; i < 2000 && drawn < wished; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      drawn = fixture.store->read(
          [&](const Engine& engine) { return engine.table(table).limiter().num_samples(); });
    }
    return drawn;
  };
  Delivery delivery;
  auto sampler = fixture.sampler(table, 2, 1);
  TENGEN_CHECK(sampler->peek() == nullptr && sampler->next(kNever, &delivery));
  TENGEN_CHECK(num_drawn(4) == 4);
  const Delivery* next = sampler->peek();
  TENGEN_CHECK(next != nullptr && next == sampler->peek());
  TENGEN_CHECK((values_of(fixture, *next) == std::vector<int64_t>{2, 3}));
  sampler->ack(delivery.lease, {});
  TENGEN_CHECK(num_drawn(6) == 6);
  for (int64_t i = 2; i < 6; i += 2) {
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    TENGEN_CHECK((values_of(fixture, delivery) == std::vector<int64_t>{i, i + 1}));
  }
  sampler = fixture.sampler(table, 2, 0);
  for (int i = 0; i < 2; ++i) {
    TENGEN_CHECK(sampler->next(kNever, &delivery));
    sampler->ack(delivery.lease, {});
    TENGEN_CHECK(sampler->next(soon(), &delivery) && sampler->peek() == nullptr);
    sampler->give_back(delivery.lease);
  }
}

// A refused request ends its own client, with the engine's words, and no other.
void check_refusals(Carrier carrier) {
  Fixture fixture(carrier);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 1e9));
  Writer good = fixture.writer("good");
  {
    Writer bad = fixture.writer("bad");
    append(bad, 1);
    const double negative = -1.0;
    bad.insert({table, 0, 0, 1, 1, 1, {&negative, 1}}, kNever);
    std::string told;
    for (int i = 0; i < 2; ++i) {
      try {
        bad.flush(kNever);
      } catch (const Error& error) {
        told = error.what();
      }
      TENGEN_CHECK(told.find("priority") != std::string::npos);
    }
  }
  append(good, 2);
  TENGEN_CHECK(insert(good, table, 1) && good.flush(kNever));
  auto sampler = fixture.sampler(table, 1, 1);
  Delivery delivery;
  TENGEN_CHECK(sampler->next(kNever, &delivery));
  TENGEN_CHECK(throws([&] {
    sampler->ack(delivery.lease + 1, {});
    sampler->next(kNever, &delivery);
  }));
  TENGEN_CHECK(throws([&] { fixture.sampler(table, 0, 1); }));
  TENGEN_CHECK(throws([&] { fixture.sampler(table, 1, 5000); }));
  fixture.server.reset();
  fixture.gateway.reset();
  TENGEN_CHECK(throws([&] { insert(good, table, 1) && good.flush(kNever); }));
}

// Many writers and samplers at once: every item is used once, and nothing hangs.
void check_many(Carrier carrier) {
  Fixture fixture(carrier, 1 << 16);
  const uint32_t table = fixture.add_table(queue_of("t", 1, 50));
  constexpr int kItems = 1998;  // a multiple of each batch
  constexpr int kClients = 3;
  std::mutex mutex;
  std::map<int64_t, int> uses;
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<SamplerPort>> samplers;
  for (int c = 0; c < kClients; ++c) {
    writers.emplace_back(new Writer(fixture.writer("w" + std::to_string(c))));
    samplers.push_back(fixture.sampler(table, 1 + static_cast<uint32_t>(c), 1));
  }
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      for (int64_t i = 0; i < kItems; ++i) {
        const Step step(c * kItems + i);
        const std::byte* columns[] = {reinterpret_cast<const std::byte*>(&step.x),
                                      reinterpret_cast<const std::byte*>(step.y.data())};
        writers[c]->append(columns, 1, kNever);
        insert(*writers[c], table, 1);
      }
    });
    threads.emplace_back([&, c] {
      Delivery delivery;
      for (int i = 0; i < kItems; ++i) {
        samplers[c]->next(kNever, &delivery);
        const std::vector<int64_t> values = values_of(fixture, delivery);
        {
          const std::scoped_lock lock(mutex);
          for (const int64_t value : values) ++uses[value];
        }
        samplers[c]->ack(delivery.lease, {});
        if ((i + 1) * (c + 1) >= kItems) break;
      }
      samplers[c].reset();  // gives back what it drew ahead, which others wait for
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [value, count] : uses) TENGEN_CHECK(count == 1);
  TENGEN_CHECK(uses.size() == kClients * kItems);
}

}  // namespace

int main() {
  for (const Carrier carrier : kAll) {
    check_items(carrier);
    check_limits(carrier);
    check_death(carrier);
    check_many(carrier);
  }
  for (const Carrier carrier : kRemote) {
    check_order(carrier);
    check_refusals(carrier);
  }
  check_peek();
  return 0;
}
